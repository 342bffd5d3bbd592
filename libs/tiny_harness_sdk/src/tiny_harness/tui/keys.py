"""What a person can do by a key: the same list for the footer, the keyboard and the command palette."""

from collections.abc import Awaitable
from functools import partial
from typing import Final, Protocol, cast

from textual.binding import Binding
from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content

KEYS: Final = (
    Binding("f2", "complete", "Complete", tooltip="End the task as done"),
    Binding("f3", "cancel", "Cancel", tooltip="End the task as canceled; asks once"),
    Binding("escape", "interrupt", "Interrupt", tooltip="Cut the running turn and keep the task"),
    Binding("f4,ctrl+n", "new", "New", tooltip="Begin another conversation"),
    Binding("f5,ctrl+t", "tasks", "Tasks", tooltip="Open a task"),
    # The composer would select text by F6 and F7.
    Binding("f6", "answer", "Answer", tooltip="Choose an answer to the open question", priority=True),
    Binding("f7", "details", "Details", tooltip="Task, plan, sub-tasks and events", priority=True),
    Binding("f8,ctrl+g", "sub_task", "Sub-task", tooltip="Open a sub-task"),
    Binding("f9", "parent", "Parent", tooltip="Back to the task that this one is a part of"),
    Binding("ctrl+o", "copy", "Copy", tooltip="Copy the last reply to the clipboard"),
    Binding("ctrl+p", "command_palette", "Keys", tooltip="All that can be done, by name", priority=True),
    Binding("ctrl+q", "quit", "Quit", tooltip="Leave; the tasks go on", priority=True),
)
OFF: Final = " · not now"


class Allowing(Protocol):
    """Whoever knows what can be done now."""

    def allows(self, action: str) -> bool | None:
        """Say whether an action can be done."""
        ...


class Actions(Provider):
    """The keys' actions in the command palette. What cannot be done now is there, dimmed, and does nothing."""

    async def discover(self) -> Hits:
        """List them all."""
        for name, words, action in self._offered():
            yield DiscoveryHit(Content.styled(name, "dim") if name.endswith(OFF) else name, action, name, words)

    async def search(self, query: str) -> Hits:
        """List those that fit."""
        matcher = self.matcher(query)
        for name, words, action in self._offered():
            if (score := matcher.match(f"{name} {words}")) > 0:
                yield Hit(score, Content.styled(name, "dim") if name.endswith(OFF) else name, action, name, words)

    def _offered(self) -> list[tuple[str, str, partial[Awaitable[bool]]]]:
        shown = [binding for binding in KEYS if binding.action not in ("command_palette", "quit")]
        return [
            (
                binding.description + ("" if cast(Allowing, self.app).allows(binding.action) else OFF),
                binding.tooltip,
                partial(self.app.run_action, binding.action),
            )
            for binding in shown
        ]
