"""Replies that are still being written."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from textual.widget import Widget
from textual.widgets import Markdown
from textual.widgets.markdown import MarkdownStream

from tiny_harness.client import DeltaText, MessageView
from tiny_harness.tui.printable import printable


@dataclass
class Growing:
    """A reply that grows."""

    widget: Markdown
    stream: MarkdownStream
    attempt: int
    next_index: int = 0


class Replies:
    """The growing replies, by the ids that their messages will have.

    News of one's end may be slower than the start of the next one.

    Args:
        mount: Puts a widget where the next words belong.
    """

    def __init__(self, mount: Callable[[Widget], Awaitable[None]]) -> None:
        self._mount = mount
        self._growing: dict[str, Growing] = {}

    async def piece(self, delta: DeltaText) -> None:
        """Show a piece; a later attempt replaces what an earlier one wrote."""
        reply = self._growing.get(delta.message_id)
        if reply is None or delta.attempt > reply.attempt:
            await self.drop(delta.message_id)
            reply = await self._start(delta)
        if delta.attempt < reply.attempt or delta.index < reply.next_index:
            return
        reply.next_index = delta.index + 1
        await reply.stream.write(printable(delta.text))

    async def finish(self, message: MessageView) -> Markdown | None:
        """Give a reply its final words; `None` if it was not growing."""
        reply = self._growing.pop(message.message_id, None)
        if reply is None:
            return None
        await reply.stream.stop()
        if reply.widget.source != (text := printable(message.text)):
            await reply.widget.update(text)
        return reply.widget

    async def cut(self) -> None:
        """Dim what its turn's end left unfinished: it is in nobody's history."""
        replies, self._growing = self._growing, {}
        for reply in replies.values():
            await reply.stream.stop()
            reply.widget.add_class("cut")

    async def drop(self, message_id: str) -> None:
        """Take a reply away."""
        reply = self._growing.pop(message_id, None)
        if reply is not None:
            await reply.stream.stop()
            await reply.widget.remove()

    async def drop_all(self) -> None:
        """Take all of them away."""
        for message_id in tuple(self._growing):
            await self.drop(message_id)

    async def _start(self, delta: DeltaText) -> Growing:
        widget = Markdown(classes="agent", open_links=False)
        await self._mount(widget)
        reply = self._growing[delta.message_id] = Growing(widget, Markdown.get_stream(widget), delta.attempt)
        return reply
