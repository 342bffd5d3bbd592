"""Follows tasks for all streams of this process: the store is the truth, the bus only says that there is more.

One connection to the bus. Each feed has a cursor: it replays the store from there, then follows the bus, drops what it
has and fills a jump in the numbers from the store. So no event is lost, repeated or reordered, whatever the bus does.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Final

from tiny_harness.background import in_background
from tiny_harness.bus import Bus, BusReader, Frame, Lagged
from tiny_harness.errors import Unavailable
from tiny_harness.events import Event
from tiny_harness.store import Store

MAX_WAITING: Final = 1_000
"""Frames that may wait for one reader; past that it reads the store again when it gets to it."""
PAGE: Final = 200
REPLAYS_AT_ONCE: Final = 64
CHECK_INTERVAL_S: Final = 15.0
"""How often all cursors are compared with the store, in case the bus lost something."""
DEAF_INTERVAL_S: Final = 0.5
"""The same while the bus brings nothing: it is lost, or does not reach the engine, which runs in another process."""

log = logging.getLogger(__name__)


class Subscriptions:
    """All feeds of this process. Open with `running`."""

    def __init__(self, store: Store, bus: Bus, check_interval_s: float | None = None, *, drain_s: float = 0.0) -> None:
        """`drain_s` is how long those who wait for an answer may go on once streams are told to end."""
        self._store = store
        self._bus = bus
        self._check_interval_s = check_interval_s or CHECK_INTERVAL_S
        self._reader: BusReader | None = None
        self._feeds: defaultdict[str, set[Feed]] = defaultdict(set)
        self._replays = asyncio.Semaphore(REPLAYS_AT_ONCE)
        self._has_lagged = asyncio.Event()
        self._is_stopping = False
        self._drain_s = drain_s

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Follow the bus while the block runs; at its end all feeds end."""
        async with self._bus.open_reader() as reader:
            self._reader = reader
            self._is_stopping = False
            async with in_background(self._follow(reader)), in_background(self._check()):
                try:
                    yield
                finally:
                    self._is_stopping = True
                    self._close()

    def close_feeds(self) -> None:
        """End all streams cleanly, and those that are still opened: their clients resume elsewhere.

        Who waits for an answer cannot, and has a while to get it.
        """
        self._is_stopping = True
        self._close(of_streams_only=True)
        asyncio.get_running_loop().call_later(self._drain_s, self._close)

    def _close(self, *, of_streams_only: bool = False) -> None:
        for feed in [feed for feeds in self._feeds.values() for feed in feeds]:
            if not (of_streams_only and feed.is_patient):
                feed.close()

    @asynccontextmanager
    async def follow(
        self, task_id: str, after: int, *, deltas: bool = False, is_patient: bool = False
    ) -> AsyncGenerator["Feed"]:
        """Open a feed of the events with `seq > after`, and of deltas if wanted; a patient one outlives streams."""
        if self._reader is None:
            raise RuntimeError("subscriptions are not running")
        feed = Feed(self._store, self._replays, task_id, after, deltas, is_patient)
        if self._is_stopping and not is_patient:
            feed.close()
        await self._reader.watch(task_id)
        self._feeds[task_id].add(feed)
        try:
            yield feed
        finally:
            self._feeds[task_id].discard(feed)
            if not self._feeds[task_id]:
                del self._feeds[task_id]
            await self._reader.unwatch(task_id)

    async def _follow(self, reader: BusReader) -> None:
        async for frame in reader.frames():
            if isinstance(frame, Lagged):
                self._has_lagged.set()
            else:
                for feed in self._feeds.get(frame.task_id, ()):
                    feed.offer(frame)

    @property
    def _interval_s(self) -> float:
        is_hearing = self._reader is None or self._reader.is_hearing
        return self._check_interval_s if is_hearing else min(DEAF_INTERVAL_S, self._check_interval_s)

    async def _check(self) -> None:
        while True:
            with suppress(TimeoutError):  # not `wait_for`: Python 3.11's may swallow a cancel
                async with asyncio.timeout(self._interval_s):
                    await self._has_lagged.wait()
            self._has_lagged.clear()
            try:
                await self._compare()
            except Unavailable as error:
                log.warning("cursors were not compared: %s", error.reason)

    async def _compare(self) -> None:
        """Wake the feeds that are behind the store: one query for all."""
        heads = await self._store.heads(list(self._feeds)) if self._feeds else {}
        for task_id, head in heads.items():
            for feed in self._feeds.get(task_id, ()):
                if feed.cursor < head:
                    feed.wake()


class Feed:
    """One reader's view of one task: an async iterator of events and deltas, in order."""

    def __init__(
        self, store: Store, replays: asyncio.Semaphore, task_id: str, after: int, deltas: bool, is_patient: bool = False
    ) -> None:
        self.cursor = after
        """Number of the last event that was given out."""
        self.is_patient = is_patient
        """Whether somebody waits for an answer by it, rather than streams."""
        self._store = store
        self._replays = replays
        self._task_id = task_id
        self._deltas = deltas
        self._is_behind = True
        self._is_closed = False
        self._waiting: list[Frame] = []
        self._news = asyncio.Event()

    def offer(self, frame: Frame) -> None:
        """Take a frame from the bus."""
        if frame.seq is None and not self._deltas:
            return
        if len(self._waiting) >= MAX_WAITING:
            self._waiting.clear()
            self._is_behind = True
        else:
            self._waiting.append(frame)
        self._news.set()

    def wake(self) -> None:
        """Look at the store once."""
        self._is_behind = True
        self._news.set()

    def close(self) -> None:
        """End the iteration."""
        self._is_closed = True
        self._news.set()

    async def items(self) -> AsyncGenerator[Event | Frame]:
        """Yield events, and deltas as frames without a number."""
        while not self._is_closed:
            if self._is_behind:
                async for event in self._replay():
                    yield event
            elif self._waiting:
                item = self._take(self._waiting.pop(0))
                if item is not None:
                    yield item
            else:
                self._news.clear()
                await self._news.wait()

    def _take(self, frame: Frame) -> Frame | Event | None:
        if frame.seq is None:
            return frame
        if frame.seq <= self.cursor:
            return None
        if frame.seq > self.cursor + 1 or frame.kind is None:
            self._is_behind = True
            return None
        self.cursor = frame.seq
        return Event(frame.task_id, frame.seq, "", frame.kind, frame.payload)

    async def _replay(self) -> AsyncGenerator[Event]:
        self._is_behind = False
        while not self._is_closed:
            async with self._replays:
                page = await self._store.events(self._task_id, self.cursor, PAGE)
            for event in page:
                self.cursor = event.seq
                yield event
            if len(page) < PAGE:
                break
        self._drop_known()

    def _drop_known(self) -> None:
        """Drop what was published before an event that the store gave: deltas of a reply that is out are stale."""
        known = [index for index, frame in enumerate(self._waiting) if frame.seq and frame.seq <= self.cursor]
        del self._waiting[: known[-1] + 1 if known else 0]
