"""The lines that are always true: what the task is, and what went wrong or is being asked."""

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Static

from tiny_harness.tui.facts import usage_words
from tiny_harness.tui.printable import one_line
from tiny_harness.tui.room import Room


class StatusLine(Vertical):
    """Two lines: name and connection; state in words, chosen model and effort, what was used."""

    def compose(self) -> ComposeResult:
        """Lay out the lines."""
        with Horizontal():
            yield Static(id="name", markup=False)
            yield Static(id="link", markup=False)
        with Horizontal():
            yield Static(id="state", markup=False)
            yield Static(id="chosen", markup=False)
            yield Static(id="used", markup=False)

    def show(self, room: Room) -> None:
        """Show a room's name, its state, what was chosen for it and what it has used."""
        self.query_one("#name", Static).update(Content(room.name))
        self.query_one("#chosen", Static).update(Content(room.chosen))
        self.query_one("#used", Static).update(Content(usage_words(room.view)))
        self.query_one("#state", Static).update(Content(f"{_MARK[_mood(room)]} {room.words}"))
        self.set_classes(_mood(room))

    def show_link(self, trouble: str) -> None:
        """Show whether the harness can be reached; `trouble` is empty if so."""
        line = self.query_one("#link", Static)
        line.update(Content("Reconnecting …" if trouble else "Connected"))
        line.set_class(bool(trouble), "trouble")


class Notice(Static):
    """One line above the composer: an error or a question. Empty, it takes no room."""

    def __init__(self) -> None:
        super().__init__(id="notice", markup=False)
        self.words = ""

    def tell(self, words: str) -> None:
        """Show words; none takes the line away."""
        self.words = one_line(words)
        self.update(Content(self.words))
        self.set_class(bool(self.words), "open")


_MARK = {"busy": "●", "ended": "■", "waiting": "○"}


def _mood(room: Room) -> str:
    if room.is_busy:
        return "busy"
    return "ended" if room.has_ended else "waiting"
