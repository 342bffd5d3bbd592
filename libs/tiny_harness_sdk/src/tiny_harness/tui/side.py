"""What there is to know of the open task beside its words: four tabs."""

from collections.abc import Sequence

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.widgets import OptionList, Static, TabbedContent, TabPane, Tabs
from textual.widgets.option_list import Option

from tiny_harness.tui.facts import plan_facts, sub_task_facts, task_facts
from tiny_harness.tui.room import Room


class Facts(VerticalScroll):
    """Lines of words that scroll."""

    def __init__(self, name: str) -> None:
        super().__init__(id=f"{name}-facts")
        self.lines: tuple[str, ...] = ()

    def compose(self) -> ComposeResult:
        """Lay out the text."""
        yield Static(markup=False)

    def show(self, lines: Sequence[str]) -> None:
        """Show lines."""
        if (new := tuple(lines)) != self.lines:
            self.lines = new
            self.query_one(Static).update(Content("\n".join(new)))


class Side(Vertical):
    """Task, Plan, Sub-tasks, Events. What is not in sight is not drawn."""

    class Opened(Message):
        """The person wants to see a sub-task."""

        def __init__(self, task_id: str) -> None:
            super().__init__()
            self.task_id = task_id

    def __init__(self) -> None:
        super().__init__(id="side")
        self._room = Room()
        self._children: tuple[str, ...] = ()

    def compose(self) -> ComposeResult:
        """Lay out the tabs."""
        with TabbedContent(initial="task"):
            with TabPane("Task", id="task"):
                yield Facts("task")
            with TabPane("Plan", id="plan"):
                yield Facts("plan")
            with TabPane("Sub-tasks", id="sub-tasks"):
                yield Static("No sub-tasks", id="no-sub-tasks", markup=False)
                yield OptionList(id="sub-task-list", markup=False)
            with TabPane("Events", id="events"):
                yield Facts("events")

    def take_keys(self) -> None:
        """Let the arrows choose a tab; Tab goes on to what is in it."""
        self.screen.set_focus(self.query_one(Tabs))

    def show(self, room: Room) -> None:
        """Show a room, once it is in sight."""
        self._room = room
        if self.display and self.is_mounted:
            self._draw()

    @on(TabbedContent.TabActivated)
    def draw_tab(self) -> None:
        """Draw the tab that has come into sight."""
        self._draw()

    @on(OptionList.OptionSelected, "#sub-task-list")
    def open(self, event: OptionList.OptionSelected) -> None:
        """Open a sub-task."""
        event.stop()
        if event.option_id:
            self.post_message(self.Opened(event.option_id))

    def _draw(self) -> None:
        room, active = self._room, self.query_one(TabbedContent).active
        if active == "task":
            self.query_one("#task-facts", Facts).show(task_facts(room))
        elif active == "plan":
            self.query_one("#plan-facts", Facts).show(plan_facts(room))
        elif active == "events":
            self.query_one("#events-facts", Facts).show(list(reversed(room.events)))
        elif active == "sub-tasks":
            self._draw_children(sub_task_facts(room))

    def _draw_children(self, children: Sequence[tuple[str, str]]) -> None:
        lines = tuple(line for _, line in children)
        if lines == self._children:
            return
        self._children = lines
        listing = self.query_one("#sub-task-list", OptionList)
        held = listing.highlighted
        listing.clear_options()
        listing.add_options([Option(line, id=task_id, disabled=not task_id) for task_id, line in children])
        listing.highlighted = min(held or 0, len(children) - 1) if children else None
        listing.display = bool(children)
        self.query_one("#no-sub-tasks").display = not children
