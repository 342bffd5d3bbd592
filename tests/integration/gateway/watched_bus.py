"""A bus that tells how many streams follow a task, so that tests wait for that and not for time."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

from tiny_harness.bus import BusReader, Frame, Lagged, LocalBus


class WatchedBus(LocalBus):
    """Counts the watchers of each task."""

    def __init__(self) -> None:
        super().__init__()
        self.watchers: Counter[str] = Counter()
        self.changed = asyncio.Condition()

    @asynccontextmanager
    async def open_reader(self) -> AsyncGenerator[BusReader]:
        async with super().open_reader() as reader:
            yield _CountedReader(reader, self)

    async def until_watched(self, task_id: str, count: int) -> None:
        """Wait until so many streams follow a task."""
        async with asyncio.timeout(20), self.changed:
            await self.changed.wait_for(lambda: self.watchers[task_id] == count)


class _CountedReader:
    def __init__(self, reader: BusReader, bus: WatchedBus) -> None:
        self._reader = reader
        self._bus = bus

    @property
    def is_hearing(self) -> bool:
        return self._reader.is_hearing

    async def watch(self, task_id: str) -> None:
        await self._reader.watch(task_id)
        await self._count(task_id, 1)

    async def unwatch(self, task_id: str) -> None:
        await self._reader.unwatch(task_id)
        await self._count(task_id, -1)

    def frames(self) -> AsyncIterator[Frame | Lagged]:
        return self._reader.frames()

    async def _count(self, task_id: str, change: int) -> None:
        async with self._bus.changed:
            self._bus.watchers[task_id] += change
            self._bus.changed.notify_all()
