"""Somebody who reads a task's stream with a cursor, as it is on the wire, whatever dies between the two."""

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

import httpx

from tests.wire import Frame, read_frames

PAUSE_S: Final = 0.1
"""Before the next attempt at a gateway that is not there."""
PASSING: Final = frozenset({429, 503})
"""A gateway that cannot answer now."""


@dataclass
class Watcher:
    """A reader of one task. Nothing of what comes is dropped: a number that came twice is seen twice."""

    task_id: str
    seen: list[Frame] = field(default_factory=list[Frame])
    breaks: int = 0

    @property
    def numbers(self) -> list[int]:
        """The events, by number, as they came."""
        return [frame.seq for frame in self.seen]

    @property
    def received(self) -> Counter[str]:
        """How often each message was taken in, by its id."""
        return Counter(message["messageId"] for frame in self.seen if (message := _received(frame)) is not None)

    @property
    def answered(self) -> Counter[str]:
        """How often each message was answered, by its id."""
        return Counter(message_id for frame in self.seen for message_id in frame.data.in_reply_to)

    async def watch(self, http: httpx.AsyncClient) -> None:
        """Read until the task has ended."""
        while not self.seen or self.seen[-1].state != "COMPLETED":
            try:
                await self._read(http)
            except httpx.TransportError:
                await asyncio.sleep(PAUSE_S)
            self.breaks += 1

    async def _read(self, http: httpx.AsyncClient) -> None:
        headers = {"Last-Event-ID": str(self.seen[-1].seq if self.seen else 0)}
        async with http.stream("GET", f"/rest/tasks/{self.task_id}:subscribe", headers=headers) as response:
            if response.status_code in PASSING:
                await asyncio.sleep(PAUSE_S)
                return
            async for frame in read_frames(response):
                self.seen.append(frame)


def _received(frame: Frame) -> dict[str, Any] | None:
    """The participant's message that an event records; a task's first event shows it as its history."""
    history = frame.body.get("history", ()) if "task" in frame.payload else ()
    return history[0] if history else frame.data.received
