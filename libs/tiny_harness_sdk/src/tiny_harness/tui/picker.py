"""The list of tasks to go back to."""

from datetime import datetime
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from tiny_harness.client import HarnessClient, TaskList, TaskView
from tiny_harness.errors import HarnessError
from tiny_harness.states import describe
from tiny_harness.tui.keyline import KeyLine
from tiny_harness.tui.printable import one_line
from tiny_harness.tui.room import title

REFRESH_S = 2.0
PAGE = 50
MORE = "more"


class TaskPicker(ModalScreen[str | None]):
    """Gives the id of the chosen task, `None` if none was chosen. Refreshes while it is open."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Back"),
        Binding("f5,ctrl+t", "leave", "Back", show=False),
    ]

    def __init__(self, client: HarnessClient) -> None:
        super().__init__()
        self._client = client
        self._limit = PAGE

    def compose(self) -> ComposeResult:
        """Lay out the list under one line of words."""
        with Vertical(id="picker"):
            yield Static("Looking …", id="picker-words", markup=False)
            yield OptionList(id="picker-list", markup=False)
        yield KeyLine()

    def on_mount(self) -> None:
        """Look now, and again and again."""
        self.look()
        self.set_interval(REFRESH_S, self.look)

    @work(exclusive=True, group="look")
    async def look(self) -> None:
        """Fetch the list and show it, keeping the highlighted task."""
        words = self.query_one("#picker-words", Static)
        try:
            tasks = await self._client.tasks(limit=self._limit)
        except HarnessError as error:
            words.update(one_line(str(error)))
            return
        words.update("Tasks, newest change first" if len(tasks) else "No tasks yet. Escape goes back.")
        self._fill(tasks)

    @on(OptionList.OptionSelected)
    def choose(self, event: OptionList.OptionSelected) -> None:
        """Open a task, or show more of them."""
        if event.option_id == MORE:
            self._limit += PAGE
            self.look()
        else:
            self.dismiss(event.option_id)

    def action_leave(self) -> None:
        """Go back to the conversation."""
        self.dismiss(None)

    def _fill(self, tasks: TaskList) -> None:
        listing = self.query_one(OptionList)
        held = listing.highlighted_option.id if listing.highlighted_option else None
        options = [Option(_line(task), id=task.task_id) for task in tasks]
        if tasks.after is not None:
            options.append(Option("Show more", id=MORE))
        listing.clear_options()
        listing.add_options(options)
        ids = [option.id for option in options]
        listing.highlighted = ids.index(held) if held in ids else (0 if ids else None)


def _line(task: TaskView) -> Content:
    when = _when(task.updated_at)
    detail = " · ".join(part for part in (describe(task.state, task.sub_state), when) if part)
    return Content.assemble(Content(title(task)), Content.styled(f"\n  {detail}", "dim"))


def _when(at: datetime | None) -> str:
    return at.astimezone().strftime("%Y-%m-%d %H:%M") if at else ""
