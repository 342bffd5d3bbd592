"""The messages of a task: a person's in a soft box, the agent's as Markdown, streamed, the harness's own apart."""

from dataclasses import dataclass

from textual.containers import VerticalScroll
from textual.widget import Widget
from textual.widgets import Markdown
from textual.widgets.markdown import MarkdownStream

from tiny_harness.client import DeltaText, MessageView, TaskView
from tiny_harness.tui.printable import printable
from tiny_harness.tui.words import QUEUED, SENDING, HarnessWords, Words


@dataclass
class Draft:
    """A reply that is still being written."""

    message_id: str
    widget: Markdown
    stream: MarkdownStream
    attempt: int
    next_index: int = 0


class Conversation(VerticalScroll):
    """Shows messages by their ids, so that telling it something twice changes nothing."""

    can_focus = True

    def __init__(self) -> None:
        super().__init__(id="conversation")
        self._shown: dict[str, Widget] = {}
        self._draft: Draft | None = None

    def on_mount(self) -> None:
        """Stay at the end until the reader scrolls away."""
        self.anchor()

    async def clear(self) -> None:
        """Show nothing."""
        await self._drop_draft()
        self._shown.clear()
        await self.remove_children()

    async def show(self, view: TaskView) -> None:
        """Show a task's messages; what is on the screen already stays where it is."""
        known = [message.message_id for message in view.messages if message.message_id in self._shown]
        if known != [message_id for message_id in self._shown if message_id in set(known)]:
            await self.clear()
        for message in view.messages:
            await self.add(message)

    async def add(self, message: MessageView, note: str = "", *, is_refusal: bool = False) -> None:
        """Show a message, or change the note of one that is shown.

        Args:
            message: The message.
            note: What to say below a person's.
            is_refusal: Whether it is a policy that speaks, not the agent.
        """
        shown = self._shown.get(message.message_id)
        if isinstance(shown, Words):
            if note != SENDING:  # news of it may be faster than its echo
                shown.note(note)
        elif shown is None and message.text and not await self._finish_draft(message):
            self._shown[message.message_id] = widget = _widget(message, note, is_refusal=is_refusal)
            await self._mount(widget)

    async def take_back(self, message_id: str) -> None:
        """Take a message away that could not be sent."""
        widget = self._shown.pop(message_id, None)
        if widget is not None:
            await widget.remove()

    def note_all(self, queued: set[str]) -> None:
        """Note which messages wait, and that the others do not."""
        for message_id, widget in self._shown.items():
            if isinstance(widget, Words) and widget.note_text == QUEUED and message_id not in queued:
                widget.note("")

    async def piece(self, delta: DeltaText) -> None:
        """Show a piece of a growing reply; a later attempt replaces what an earlier one wrote."""
        draft = self._draft
        if delta.message_id in self._shown:
            return
        if draft is None or draft.message_id != delta.message_id or delta.attempt > draft.attempt:
            await self._drop_draft()
            draft = await self._start_draft(delta)
        if delta.attempt < draft.attempt or delta.index < draft.next_index:
            return
        draft.next_index = delta.index + 1
        await draft.stream.write(printable(delta.text))

    async def cut(self) -> None:
        """Dim a reply whose turn ended before it was finished: it is in nobody's history."""
        if self._draft is not None:
            draft, self._draft = self._draft, None
            await draft.stream.stop()
            draft.widget.add_class("cut")

    async def _start_draft(self, delta: DeltaText) -> Draft:
        widget = Markdown(classes="agent", open_links=False)
        await self._mount(widget)
        self._draft = Draft(delta.message_id, widget, Markdown.get_stream(widget), delta.attempt)
        return self._draft

    async def _finish_draft(self, message: MessageView) -> bool:
        draft = self._draft
        if draft is None or draft.message_id != message.message_id:
            return False
        self._draft = None
        await draft.stream.stop()
        if draft.widget.source != (text := printable(message.text)):
            await draft.widget.update(text)
        self._shown[message.message_id] = draft.widget
        return True

    async def _drop_draft(self) -> None:
        if self._draft is not None:
            draft, self._draft = self._draft, None
            await draft.stream.stop()
            await draft.widget.remove()

    async def _mount(self, widget: Widget) -> None:
        """Put a widget below what is known to have happened, above what is still being sent."""
        sending = next((words for words in self.query_children(Words) if words.note_text == SENDING), None)
        await self.mount(widget, before=sending)


def _widget(message: MessageView, note: str, *, is_refusal: bool) -> Widget:
    if message.role == "user":
        return Words(message.text, note)
    if message.command or is_refusal:
        return HarnessWords(message.text, message.command)
    return Markdown(printable(message.text), classes="agent", open_links=False)
