"""What a task is a part of, its plan and its parts: a panel, and the list to open one of several."""

from typing import ClassVar, Final

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from tiny_harness.client import HarnessClient
from tiny_harness.errors import HarnessError
from tiny_harness.ext.task import SubTask
from tiny_harness.tui.facts import state_words
from tiny_harness.tui.keyline import KeyLine
from tiny_harness.tui.printable import one_line
from tiny_harness.tui.room import Room, title
from tiny_harness.tui.telling import plan_lines

MAX_LINES: Final = 3
"""Sub-tasks that the panel shows; the list has them all."""
NAMES: Final = 100
"""Tasks among which the list looks for the names of sub-tasks."""


class Family(Static):
    """Parent, plan and sub-tasks in a few lines. A task without any takes no room."""

    def __init__(self) -> None:
        super().__init__(id="family", markup=False)
        self.lines: tuple[str, ...] = ()

    def show(self, room: Room) -> None:
        """Show a room's family."""
        lines = tuple(family_lines(room))
        if lines != self.lines:
            self.lines = lines
            self.update(Content("\n".join(lines)))
            self.set_class(bool(lines), "open")


def family_lines(room: Room) -> list[str]:
    """Put a room's family into words, one line each. Pure."""
    if room.view is None:
        return []
    lines = [f"Part of {one_line(parent)}" for parent in room.view.parent_tasks]
    lines += plan_lines(room.view.plan) if room.view.plan else []
    children = room.view.sub_tasks
    lines += [
        f"Sub-task {one_line(child.task_id)} · {state_words(child.state, child.sub_state)}"
        for child in children[:MAX_LINES]
    ]
    if len(children) > MAX_LINES:
        lines.append(f"… and {len(children) - MAX_LINES} more sub-tasks")
    return lines


class SubTaskPicker(ModalScreen[str | None]):
    """Gives the id of the chosen sub-task, `None` if none was chosen."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,f8", "leave", "Back")]

    def __init__(self, client: HarnessClient, children: tuple[SubTask, ...]) -> None:
        super().__init__()
        self._client = client
        self._children = children

    def compose(self) -> ComposeResult:
        """Lay out the list under one line of words."""
        with Vertical(id="picker"):
            yield Static("Sub-tasks, oldest first", id="picker-words", markup=False)
            yield OptionList(*(Option(_line(child, {}), id=child.task_id) for child in self._children), markup=False)
        yield KeyLine()

    def on_mount(self) -> None:
        """Choose the first, and look for the names."""
        listing = self.query_one(OptionList)
        listing.highlighted = 0
        listing.focus()
        self.look()

    @work(exclusive=True)
    async def look(self) -> None:
        """Put names to the ids."""
        try:
            tasks = await self._client.tasks(limit=NAMES)
        except HarnessError as error:
            self.query_one("#picker-words", Static).update(one_line(str(error)))
            return
        names = {task.task_id: title(task) for task in tasks}
        listing = self.query_one(OptionList)
        for child in self._children:
            listing.replace_option_prompt(child.task_id, _line(child, names))

    @on(OptionList.OptionSelected)
    def choose(self, event: OptionList.OptionSelected) -> None:
        """Open a sub-task."""
        event.stop()
        self.dismiss(event.option_id)

    def action_leave(self) -> None:
        """Go back to the task."""
        self.dismiss(None)


def _line(child: SubTask, names: dict[str, str]) -> Content:
    name = names.get(child.task_id, one_line(child.task_id))
    return Content.assemble(Content(name), Content.styled(f"\n  {state_words(child.state, child.sub_state)}", "dim"))
