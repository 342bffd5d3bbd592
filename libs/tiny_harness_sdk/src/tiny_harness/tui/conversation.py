"""The messages of a task: a person's in a soft box, the agent's as Markdown, streamed, the harness's own apart.

Between them stand, in one line each time, the tools that the agent used.
"""

from dataclasses import dataclass

from textual.containers import VerticalScroll
from textual.widget import Widget
from textual.widgets import Markdown
from textual.widgets.markdown import MarkdownStream

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
from tiny_harness.tui.printable import printable
from tiny_harness.tui.words import QUEUED, SENDING, HarnessWords, Note, ToolLine, Words


@dataclass
class Draft:
    """A reply that is still being written."""

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
        self._drafts: dict[str, Draft] = {}
        """By the ids that the messages will have. News of one's end may be slower than the start of the next one."""

    def on_mount(self) -> None:
        """Stay at the end until the reader scrolls away."""
        self.anchor()

    async def clear(self) -> None:
        """Show nothing."""
        for message_id in tuple(self._drafts):
            await self._drop_draft(message_id)
        self._shown.clear()
        await self.remove_children()

    async def show(self, view: TaskView) -> None:
        """Show a task's messages; what is on the screen already stays where it is."""
        known = [message.message_id for message in view.messages if message.message_id in self._shown]
        if known != [message_id for message_id in self._shown if message_id in set(known)]:
            await self.clear()
        for message in view.messages:
            await self.add(message)

    async def see(self, event: TaskEvent) -> None:
        """Show what happened."""
        if isinstance(event, TaskShown):
            await self.show(event.view)
        elif isinstance(event, DeltaText):
            await self.piece(event)
        elif isinstance(event, Received):
            await self.add(event.message, QUEUED if event.received_as == "queued" else "")
        elif isinstance(event, Replied):
            await self.add(event.message, is_refusal=bool(event.refused))
        elif isinstance(event, Stepped):
            await self._step(event)
        if isinstance(event, Changed) and event.ends_turn and not event.asks:
            await self.cut()

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

    async def piece(self, delta: DeltaText) -> None:
        """Show a piece of a growing reply; a later attempt replaces what an earlier one wrote."""
        if delta.message_id in self._shown:
            return
        draft = self._drafts.get(delta.message_id)
        if draft is None or delta.attempt > draft.attempt:
            await self._drop_draft(delta.message_id)
            draft = await self._start_draft(delta)
        if delta.attempt < draft.attempt or delta.index < draft.next_index:
            return
        draft.next_index = delta.index + 1
        await draft.stream.write(printable(delta.text))

    async def cut(self) -> None:
        """Dim what its turn's end left unfinished: it is in nobody's history."""
        drafts, self._drafts = self._drafts, {}
        for draft in drafts.values():
            await draft.stream.stop()
            draft.widget.add_class("cut")

    async def _start_draft(self, delta: DeltaText) -> Draft:
        widget = Markdown(classes="agent", open_links=False)
        await self._mount(widget)
        draft = self._drafts[delta.message_id] = Draft(widget, Markdown.get_stream(widget), delta.attempt)
        return draft

    async def _finish_draft(self, message: MessageView) -> bool:
        draft = self._drafts.pop(message.message_id, None)
        if draft is None:
            return False
        await draft.stream.stop()
        if draft.widget.source != (text := printable(message.text)):
            await draft.widget.update(text)
        self._shown[message.message_id] = draft.widget
        return True

    async def _drop_draft(self, message_id: str) -> None:
        draft = self._drafts.pop(message_id, None)
        if draft is not None:
            await draft.stream.stop()
            await draft.widget.remove()

    async def _mount(self, widget: Widget) -> None:
        """Put a widget below what is known to have happened, above what is still being sent."""
        sending = next((widget for widget in self.children if _is_sending(widget)), None)
        await self.mount(widget, before=sending)


def _is_sending(widget: Widget) -> bool:
    return isinstance(widget, Words) and widget.note_text == SENDING


def _widget(message: MessageView, note: str, *, is_refusal: bool) -> Widget:
    if message.role == "user":
        return Words(message.text, note)
    if message.role == "note":
        return Note(message.text)
    if message.command or is_refusal:
        return HarnessWords(message.text, message.command)
    return Markdown(printable(message.text), classes="agent", open_links=False)
