"""The messages of a task: a person's in a soft box, the agent's as Markdown, streamed, the harness's own apart.

Between them stand, in one line each time, the tools that the agent used. Of a long conversation only the last messages
are on the screen; those before them come as the reader scrolls up to them.
"""

from collections.abc import Sequence
from typing import Final

from textual.message import Message
from textual.widget import Widget
from textual.widgets import Markdown

from tiny_harness.client import (
    Changed,
    DeltaText,
    MessageView,
    Received,
    Replied,
    Stepped,
    TaskEvent,
    TaskShown,
    TaskView,
)
from tiny_harness.ext.stream import ToolUse
from tiny_harness.tui.growing import Replies
from tiny_harness.tui.printable import printable
from tiny_harness.tui.scroll import EndScroll
from tiny_harness.tui.words import QUEUED, SENDING, HarnessWords, Note, ToolLine, Words

WINDOW: Final = 200
"""Messages that are put on the screen without being asked for."""
FIRST: Final = 40
"""Those among them that are there at once; the others follow while the reader reads."""
MOST: Final = 2 * WINDOW
"""When there are more and the reader is at the end, the oldest ones leave the screen."""


class Conversation(EndScroll):
    """Shows messages by their ids, so that telling it something twice changes nothing."""

    class Wanting(Message):
        """The reader has come to the first message that is known here."""

    def __init__(self) -> None:
        super().__init__(id="conversation")
        self._shown: dict[str, Widget] = {}
        self._messages: dict[str, MessageView] = {}
        """What the widgets show, so that they can leave the screen and come back."""
        self._above: list[MessageView] = []
        """Known, but not on the screen yet; oldest first."""
        self._replies = Replies(self._mount)

    @property
    def is_short(self) -> bool:
        """Whether there may be room for more of what came before."""
        return len(self._shown) + len(self._above) < WINDOW

    @property
    def last_reply(self) -> str:
        """The agent's last words; empty if it has said nothing."""
        said = (message.text for message in reversed(self._messages.values()) if message.role == "agent")
        return next(said, "")

    async def clear(self) -> None:
        """Show nothing."""
        await self._replies.drop_all()
        self._shown.clear()
        self._messages.clear()
        self._above.clear()
        await self.remove_children()

    async def show(self, view: TaskView) -> None:
        """Show a task's messages; what is on the screen already stays where it is."""
        if not self._goes_on(view):
            await self.clear()
        known = {message.message_id for message in self._above} | self._shown.keys()
        new = [message for message in view.messages if message.text and message.message_id not in known]
        if not self._messages and len(new) > FIRST:
            self._above, new = new[:-FIRST], new[-FIRST:]
            self.call_later(self.fill, WINDOW)
        finished = [message for message in new if not await self._finish(message)]
        widgets = [self._remember(message, _widget(message)) for message in finished]
        await self._mount(*widgets)
        for message in view.messages:
            self._settle(message)

    def _goes_on(self, view: TaskView) -> bool:
        """Whether a task's messages are a continuation of what is shown, without a gap and in the same order."""
        held = [message.message_id for message in self._above] + list(self._messages)
        ids = [message.message_id for message in view.messages]
        known = [message_id for message_id in ids if message_id in set(held)]
        return known == [message_id for message_id in held if message_id in set(known)] and bool(
            known or not held or not ids
        )

    async def fill(self, count: int) -> None:
        """Put more of what came before on the screen, until there are `count` messages."""
        while self._above and len(self._shown) < count:
            place = max(0, len(self._above) - min(FIRST, count - len(self._shown)))
            taken, self._above = self._above[place:], self._above[:place]
            first = next(iter(self.children), None)
            old, self._shown = self._shown, {}
            old_messages, self._messages = self._messages, {}
            widgets = [self._remember(message, _widget(message)) for message in taken]
            self._shown |= old
            self._messages |= old_messages
            with self.staying():
                await self.mount_all(widgets, before=first)

    async def prepend(self, messages: Sequence[MessageView]) -> bool:
        """Take in messages from before all that are known; whether there was anything new among them."""
        known = {message.message_id for message in self._above} | self._shown.keys()
        new = [message for message in messages if message.text and message.message_id not in known]
        self._above = new + self._above
        await self.fill(max(WINDOW, len(self._shown) + FIRST) if new else WINDOW)
        return bool(new)

    async def reached_top(self) -> None:
        """Show more of what came before, or ask for it."""
        if self._above:
            await self.fill(len(self._shown) + FIRST)
        elif self._shown:
            self.post_message(self.Wanting())

    async def see(self, event: TaskEvent) -> None:
        """Show what happened."""
        if isinstance(event, TaskShown):
            await self.show(event.view)
        elif isinstance(event, DeltaText):
            if event.message_id not in self._shown:
                await self._replies.piece(event)
        elif isinstance(event, Received):
            await self.add(event.message, QUEUED if event.received_as == "queued" else "")
        elif isinstance(event, Replied):
            await self.add(event.message, is_refusal=bool(event.refused))
        elif isinstance(event, Stepped):
            await self._step(event)
        if isinstance(event, Changed) and event.ends_turn and not event.asks:
            await self._replies.cut()
        await self._trim()

    async def add(self, message: MessageView, note: str = "", *, is_refusal: bool = False) -> None:
        """Show a message, or change the note of one that is shown.

        Args:
            message: The message.
            note: What to say below a person's.
            is_refusal: Whether it is a policy that speaks, not the agent.
        """
        if message.message_id in self._shown:
            if note != SENDING:  # news of it may be faster than its echo
                self._settle(message, note)
        elif message.text and not await self._finish(message):
            widget = _widget(message, note, is_refusal=is_refusal)
            self._remember(message, widget)
            await self._mount(widget)

    def _settle(self, message: MessageView, note: str = "") -> None:
        """Set the note of a person's message that is shown."""
        shown = self._shown.get(message.message_id)
        if isinstance(shown, Words):
            shown.note(note)
            self._messages[message.message_id] = message

    async def take_back(self, message_id: str) -> None:
        """Take a message away that could not be sent."""
        widget = self._shown.pop(message_id, None)
        self._messages.pop(message_id, None)
        if widget is not None:
            await widget.remove()

    def note_all(self, queued: set[str]) -> None:
        """Note which messages wait, and that the others do not."""
        for message_id, widget in self._shown.items():
            if isinstance(widget, Words) and widget.note_text == QUEUED and message_id not in queued:
                widget.note("")

    async def _step(self, event: Stepped) -> None:
        """Show what was said before tools were used, and which ones."""
        if event.message is not None:
            await self.add(event.message)
        await self._use(event.tool_calls)

    async def _use(self, uses: tuple[ToolUse, ...]) -> None:
        last = next((widget for widget in reversed(self.children) if not _is_sending(widget)), None)
        if not isinstance(last, ToolLine):
            last = ToolLine()
            await self._mount(last)
        last.add(uses)

    async def _finish(self, message: MessageView) -> bool:
        widget = await self._replies.finish(message)
        if widget is not None:
            self._remember(message, widget)
        return widget is not None

    def _remember(self, message: MessageView, widget: Widget) -> Widget:
        self._shown[message.message_id] = widget
        if not _is_sending(widget):
            self._messages[message.message_id] = message
        return widget

    async def _mount(self, *widgets: Widget) -> None:
        """Put widgets below what is known to have happened, above what is still being sent; what is sent, last."""
        waits = any(map(_is_sending, widgets))
        sending = None if waits else next((widget for widget in self.children if _is_sending(widget)), None)
        await self.mount_all(widgets, before=sending)

    async def _trim(self) -> None:
        """Let the oldest ones leave the screen of a long conversation, unless the reader is among them."""
        if len(self.children) <= MOST or not self.is_at_end:
            return
        leaving = set(list(self.children)[: len(self.children) - WINDOW])
        gone = [message_id for message_id in self._messages if self._shown[message_id] in leaving]
        for message_id in gone:
            del self._shown[message_id]
            self._above.append(self._messages.pop(message_id))
        await self.remove_children(leaving)


def _is_sending(widget: Widget) -> bool:
    return isinstance(widget, Words) and widget.note_text == SENDING


def _widget(message: MessageView, note: str = "", *, is_refusal: bool = False) -> Widget:
    if message.role == "user":
        return Words(message.text, note)
    if message.role == "note":
        return Note(message.text)
    if message.command or is_refusal:
        return HarnessWords(message.text, message.command)
    return Markdown(printable(message.text), classes="agent", open_links=False)
