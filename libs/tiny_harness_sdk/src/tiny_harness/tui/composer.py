"""Where a person writes."""

from collections.abc import Callable
from typing import ClassVar, Final

from textual.binding import Binding, BindingType
from textual.events import Key, Paste
from textual.message import Message
from textual.widgets import TextArea

from tiny_harness.tui.completions import Completions
from tiny_harness.tui.printable import printable
from tiny_harness.tui.writing import Pastes, Sent


class Composer(TextArea):
    """A text of several lines: Enter sends it, Ctrl+J breaks the line, a paste is text whatever is in it.

    Up on the first line and Down on the last one bring earlier messages back; PageUp and PageDown move the
    conversation.
    While the list of commands is open, Enter and Tab complete, the arrows choose and Escape closes the list.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "send", "Send", show=False),
        Binding("ctrl+j,shift+enter", "line_break", "Line break", show=False),
    ]

    class Paged(Message):
        """The person wants to see what is above (-1) or below (1)."""

        def __init__(self, by: int) -> None:
            super().__init__()
            self.by = by

    class Submitted(Message):
        """The person wants this to be sent. The composer is empty already."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    def __init__(self, completions: Completions) -> None:
        super().__init__(id="composer", placeholder="Message", soft_wrap=True, show_line_numbers=False)
        self.completions = completions
        self._pastes = Pastes()
        self._earlier = Sent()

    def on_key(self, event: Key) -> None:
        """Take the keys that a text area would type.

        In here, in the order of typing: a priority binding overtakes the letters before it.
        """
        self.completions.narrow(self.text)  # the news of the last letter may still be on its way
        choice = _CHOICES.get(event.key) if self.completions.is_open else None
        action = choice or _ACTIONS.get(event.key)
        if action is not None:
            action(self)
        elif not self._recalls(event.key):
            return
        event.stop()
        event.prevent_default()

    def on_paste(self, event: Paste) -> None:
        """Take a paste in as text, line breaks included; a large one by a short token."""
        event.prevent_default()
        event.stop()
        text = printable(event.text.replace("\r\n", "\n").replace("\r", "\n"))
        self.replace(self._pastes.fold(text), *self.selection)
        self.focus()

    def _recalls(self, key: str) -> bool:
        """Bring an earlier message back if a key asks for that where the cursor is."""
        place = self.cursor_location
        if key == "up" and self.navigator.is_first_wrapped_line(place):
            self.recall(-1)
            return True
        if key == "down" and self.navigator.is_last_wrapped_line(place):
            self.recall(1)
            return True
        return False

    def recall(self, by: int) -> None:
        """Bring the message before (-1) or after (1) back; beyond the newest is what was being written."""
        text = self._earlier.move(by, self.text)
        if text is not None:
            self._replace(text)

    def on_text_area_changed(self) -> None:
        """Let the list follow what is typed."""
        self.completions.narrow(self.text)

    def action_send(self) -> None:
        """Hand the text over, unless it is blank."""
        if self.text.strip():
            written, self.text = self.text, ""
            self._earlier.add(written)
            self.post_message(self.Submitted(self._pastes.unfold(written)))

    def action_line_break(self) -> None:
        """Start a new line at the cursor."""
        self.insert("\n")

    def page(self, by: int) -> None:
        """Move the conversation by a page."""
        self.post_message(self.Paged(by))

    def complete(self, name: str) -> None:
        """Write a command's name out; its argument comes next."""
        self._replace(f"/{name} ")

    def complete_or_send(self) -> None:
        """Write the chosen command out, or send it if it is written out."""
        name = self.completions.chosen
        if self.text == f"/{name}":
            self.action_send()
        else:
            self.complete(name)

    def put_back(self, text: str) -> None:
        """Return a text that could not be sent, before what was written since."""
        text = self._pastes.fold(text)
        self._replace(f"{text}\n{self.text}" if self.text.strip() else text)

    def take_out(self) -> str:
        """Empty it for another task's draft; what was written."""
        written, self.text = self.text, ""
        return written

    def go_on(self, draft: str) -> None:
        """Go on with a draft."""
        self._replace(draft)

    def _replace(self, text: str) -> None:
        self.text = text
        self.move_cursor(self.document.end)


_ACTIONS: Final[dict[str, Callable[[Composer], None]]] = {
    "enter": Composer.action_send,
    "ctrl+j": Composer.action_line_break,
    "shift+enter": Composer.action_line_break,
    "pageup": lambda composer: composer.page(-1),
    "pagedown": lambda composer: composer.page(1),
}
_CHOICES: Final[dict[str, Callable[[Composer], None]]] = {
    "up": lambda composer: composer.completions.move(-1),
    "down": lambda composer: composer.completions.move(1),
    "tab": lambda composer: composer.complete(composer.completions.chosen),
    "enter": Composer.complete_or_send,
    "escape": lambda composer: composer.completions.dismiss(),
}
"""While the list of commands is open."""
