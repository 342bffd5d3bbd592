"""Where a person writes."""

from collections.abc import Callable
from typing import ClassVar, Final

from textual.binding import Binding, BindingType
from textual.events import Key
from textual.message import Message
from textual.widgets import TextArea


class Composer(TextArea):
    """A text of several lines: Enter sends it, Ctrl+J breaks the line, a paste is text whatever is in it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "send", "Send"),
        Binding("ctrl+j,shift+enter", "line_break", "Line break", show=False),
    ]

    class Sent(Message):
        """The person wants this to be sent. The composer is empty already."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    def on_key(self, event: Key) -> None:
        """Take the keys that a text area would type.

        In here, in the order of typing: a priority binding overtakes the letters before it.
        """
        action = _ACTIONS.get(event.key)
        if action is not None:
            event.stop()
            event.prevent_default()
            action(self)

    def action_send(self) -> None:
        """Hand the text over, unless it is blank."""
        if self.text.strip():
            text, self.text = self.text, ""
            self.post_message(self.Sent(text))

    def action_line_break(self) -> None:
        """Start a new line at the cursor."""
        self.insert("\n")

    def put_back(self, text: str) -> None:
        """Return a text that could not be sent, before what was written since."""
        self.text = f"{text}\n{self.text}" if self.text.strip() else text
        self.move_cursor(self.document.end)


_ACTIONS: Final[dict[str, Callable[[Composer], None]]] = {
    "enter": Composer.action_send,
    "ctrl+j": Composer.action_line_break,
    "shift+enter": Composer.action_line_break,
}
