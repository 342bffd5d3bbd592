"""The words that are no Markdown: a person's, the harness's own, and notes on what happens meanwhile."""

from typing import Final

from textual.content import Content
from textual.widgets import Static

from tiny_harness.client import CommandAnswer
from tiny_harness.ext.stream import ToolUse
from tiny_harness.tui.printable import one_line, printable
from tiny_harness.tui.telling import note_words, used

SENDING: Final = "sending …"
QUEUED: Final = "queued"


class Words(Static):
    """A person's words, with a note such as `queued` below them."""

    def __init__(self, text: str, note: str = "") -> None:
        super().__init__(markup=False, classes="words")
        self._text = printable(text)
        self.note(note)

    def note(self, note: str) -> None:
        """Set the note; none if empty."""
        self.note_text = note
        parts = [Content(self._text)]
        if note:
            parts.append(Content.styled(f"\n{note}", "dim italic"))
        self.update(Content.assemble(*parts))


class HarnessWords(Static):
    """What the harness itself says, under a line that names the command: exactly as it was sent, line by line."""

    def __init__(self, text: str, answer: CommandAnswer | None) -> None:
        """`answer` tells of the command; without one, it is a policy that refused a message."""
        super().__init__(markup=False, classes="harness")
        outcome = answer.outcome if answer else "refused"
        self.set_class(outcome != "done", "trouble")
        name = f"/{one_line(answer.name)}" if answer else "message"
        head = name if outcome == "done" else f"{name} {outcome}"
        self.update(Content.assemble(Content.styled(head, "bold"), Content(f"\n{printable(text)}")))


class Note(Static):
    """What the harness told the agent, such as that a sub-task has ended."""

    def __init__(self, text: str) -> None:
        super().__init__(Content(note_words(text)), markup=False, classes="note")


class ToolLine(Static):
    """The tools that the agent has used since it said something, on one line."""

    def __init__(self) -> None:
        super().__init__(markup=False, classes="tools")
        self._uses: tuple[ToolUse, ...] = ()

    def add(self, uses: tuple[ToolUse, ...]) -> None:
        """Add those of another step."""
        self._uses += uses
        self.update(Content(used(self._uses)))
