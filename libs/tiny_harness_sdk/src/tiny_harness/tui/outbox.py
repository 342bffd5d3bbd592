"""Messages on their way from the composer to the harness, one after the other, in the order of writing."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Never, Protocol

from tiny_harness.client import Changed, HarnessClient, Received, TaskEvent, TaskShown
from tiny_harness.errors import HarnessError
from tiny_harness.ids import new_id
from tiny_harness.tui.room import Room


@dataclass(frozen=True)
class Outgoing:
    """A message on its way to a room."""

    room: Room
    text: str
    message_id: str


class Sender(Protocol):
    """Whoever put the messages in, and is told what becomes of them."""

    async def see(self, room: Room, event: TaskEvent, *, is_watched: bool = False) -> None:
        """Take in what the stream of a message tells; `is_watched`: the room's own stream tells it, too."""
        ...

    def take_over(self, room: Room, events: AsyncGenerator[TaskEvent]) -> bool:
        """Take the stream of a task's first message, if the room is still open: it goes on as the room's."""
        ...

    async def take_back(self, outgoing: Outgoing, error: HarnessError) -> None:
        """Take back a message that could not be sent."""
        ...


class Outbox:
    """The queue, and what keeps a message that is sent twice one message."""

    def __init__(self, client: HarnessClient) -> None:
        self._client = client
        self._queue: asyncio.Queue[Outgoing] = asyncio.Queue()
        self._unsent: dict[str, str] = {}
        """Message ids of texts that could not be sent: they may be in all the same, so the id is used again."""

    def write(self, room: Room, text: str) -> Outgoing:
        """Address a text."""
        return Outgoing(room, text, self._unsent.pop(text, None) or new_id())

    def post(self, outgoing: Outgoing) -> None:
        """Put a message on its way."""
        self._queue.put_nowait(outgoing)

    async def deliver_all(self, sender: Sender) -> Never:
        """Send what is posted, for ever."""
        while True:
            outgoing = await self._queue.get()
            try:
                await self._deliver(outgoing, sender)
            except HarnessError as error:
                self._unsent[outgoing.text] = outgoing.message_id
                await sender.take_back(outgoing, error)

    async def _deliver(self, outgoing: Outgoing, sender: Sender) -> None:
        """Send a message and wait until the harness has it; what follows is watched."""
        room = outgoing.room
        task_id = room.task_id
        events = self._client.stream(
            outgoing.text, task_id=task_id, context_id=room.context_id, message_id=outgoing.message_id
        )
        is_handed_over = False
        try:
            async for event in events:
                await sender.see(room, event, is_watched=task_id is not None)
                if _is_receipt(event, outgoing.message_id):
                    break
            # The stream of a first message goes on as the room's: pieces of the reply are never repeated.
            is_handed_over = task_id is None and sender.take_over(room, events)
        finally:
            if not is_handed_over:
                await events.aclose()


def _is_receipt(event: TaskEvent, message_id: str) -> bool:
    if isinstance(event, TaskShown):
        return any(message.message_id == message_id for message in event.view.messages)
    if isinstance(event, Received):
        return event.message.message_id == message_id
    return isinstance(event, Changed) and message_id in event.in_reply_to
