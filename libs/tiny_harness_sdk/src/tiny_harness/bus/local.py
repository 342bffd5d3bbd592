"""The bus within one process."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from tiny_harness.bus.port import BusHealth, BusReader, Frame, Lagged

MAX_WAITING: Final = 10_000
"""Frames that may wait for a reader; past that the oldest are dropped and the reader is told."""


class LocalBus:
    """Connects publishers and readers of one event loop."""

    def __init__(self) -> None:
        self._readers: set[_LocalReader] = set()

    @property
    def health(self) -> BusHealth:
        """Always there."""
        return BusHealth(is_reached=True, was_reached=True)

    def publish(self, frame: Frame) -> None:
        """Hand a frame to every reader that watches its task."""
        for reader in self._readers:
            reader.offer(frame)

    @asynccontextmanager
    async def open_reader(self) -> AsyncGenerator[BusReader]:
        """Open a reader; it receives until the block ends."""
        reader = _LocalReader()
        self._readers.add(reader)
        try:
            yield reader
        finally:
            self._readers.discard(reader)


class _LocalReader:
    def __init__(self) -> None:
        self._watched: Counter[str] = Counter()
        self._queue: asyncio.Queue[Frame] = asyncio.Queue(MAX_WAITING)
        self._dropped = False

    @property
    def is_hearing(self) -> bool:
        return True

    def offer(self, frame: Frame) -> None:
        if frame.task_id not in self._watched:
            return
        if self._queue.full():
            self._queue.get_nowait()
            self._dropped = True
        self._queue.put_nowait(frame)

    async def watch(self, task_id: str) -> None:
        self._watched[task_id] += 1

    async def unwatch(self, task_id: str) -> None:
        self._watched[task_id] -= 1
        if self._watched[task_id] <= 0:
            del self._watched[task_id]

    async def frames(self) -> AsyncIterator[Frame | Lagged]:
        while True:
            frame = await self._queue.get()
            if self._dropped:
                self._dropped = False
                yield Lagged()
            yield frame
