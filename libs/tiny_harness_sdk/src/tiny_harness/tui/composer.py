"""Where a person writes."""

from collections.abc import Callable
from typing import ClassVar, Final

from textual.binding import Binding, BindingType
from textual.events import Key
from textual.message import Message
from textual.widgets import TextArea

from tiny_harness.tui.completions import Completions


class Composer(TextArea):
    """A text of several lines: Enter sends it, Ctrl+J breaks the line, a paste is text whatever is in it.

    While the list of commands is open, Enter and Tab complete, the arrows choose and Escape closes the list.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "send", "Send", show=False),
        Binding("ctrl+j,shift+enter", "line_break", "Line break", show=False),
    ]

    class Sent(Message):
        """The person wants this to be sent. The composer is empty already."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    def __init__(self, completions: Completions) -> None:
        super().__init__(id="composer", placeholder="Message", soft_wrap=True, show_line_numbers=False)
        self.completions = completions

    def on_key(self, event: Key) -> None:
        """Take the keys that a text area would type.

        In here, in the order of typing: a priority binding overtakes the letters before it.
        """
        self.completions.narrow(self.text)  # the news of the last letter may still be on its way
        choice = _CHOICES.get(event.key) if self.completions.is_open else None
        action = choice or _ACTIONS.get(event.key)
        if action is not None:
            event.stop()
            event.prevent_default()
            action(self)

    def on_text_area_changed(self) -> None:
        """Let the list follow what is typed."""
        self.completions.narrow(self.text)

    def action_send(self) -> None:
        """Hand the text over, unless it is blank."""
        if self.text.strip():
            text, self.text = self.text, ""
            self.post_message(self.Sent(text))

    def action_line_break(self) -> None:
        """Start a new line at the cursor."""
        self.insert("\n")

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
        self._replace(f"{text}\n{self.text}" if self.text.strip() else text)

    def _replace(self, text: str) -> None:
        self.text = text
        self.move_cursor(self.document.end)


_ACTIONS: Final[dict[str, Callable[[Composer], None]]] = {
    "enter": Composer.action_send,
    "ctrl+j": Composer.action_line_break,
    "shift+enter": Composer.action_line_break,
}
_CHOICES: Final[dict[str, Callable[[Composer], None]]] = {
    "up": lambda composer: composer.completions.move(-1),
    "down": lambda composer: composer.completions.move(1),
    "tab": lambda composer: composer.complete(composer.completions.chosen),
    "enter": Composer.complete_or_send,
    "escape": lambda composer: composer.completions.dismiss(),
}
"""While the list of commands is open."""
