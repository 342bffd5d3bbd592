"""The engine's side of Redis: publishes what was committed, and never holds a commit up."""

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from redis.asyncio import Redis
from redis.exceptions import RedisError

from tiny_harness.bus.port import Frame
from tiny_harness.bus.wire import NOTE, NOTES, channel_of, pack
from tiny_harness.seal import SealRing

MAX_WAITING: Final = 1_000
"""Frames that may wait for Redis; past that the oldest are dropped."""
BATCH: Final = 100
"""Frames that are sent at once."""
RETRY_INTERVAL_S: Final = 0.25
PING_INTERVAL_S: Final = 5.0
"""How often an idle publisher looks whether Redis is there."""

log = logging.getLogger(__name__)


class Publisher:
    """A bounded queue, and one connection that empties it in order.

    Whoever listens is told if a frame was dropped, so that nobody waits for the next one to notice: a note makes every
    gateway compare its streams with the store.
    """

    def __init__(self, client: Redis, ring: SealRing, where: str) -> None:
        self._client = client
        self._ring = ring
        self._where = where
        self._waiting: deque[Frame] = deque()
        self._news = asyncio.Event()
        self._dropped = 0
        self._noted = 0
        """Of the dropped ones: how many the gateways were told of."""
        self._is_told = False
        self.is_connected = False
        self.was_connected = False

    def offer(self, frame: Frame) -> None:
        """Take a frame; drops the oldest one if Redis is too slow."""
        if len(self._waiting) >= MAX_WAITING:
            self._waiting.popleft()
            self._dropped += 1
        self._waiting.append(frame)
        self._news.set()

    async def run(self) -> None:
        """Publish until cancelled."""
        while True:
            try:
                await self._client.ping()
                self._tell_connected()
                await self._publish()
            except (RedisError, OSError) as error:
                self._tell_lost(error)
            await asyncio.sleep(RETRY_INTERVAL_S)
            # What could not be sent in time is old by now: a delta would stand behind its reply.
            self._dropped += len(self._waiting)
            self._waiting.clear()

    async def _publish(self) -> None:
        while True:
            await self._send_waiting()
            with suppress(TimeoutError):  # not `wait_for`: Python 3.11's may swallow a cancel
                async with asyncio.timeout(PING_INTERVAL_S):
                    await self._news.wait()
            if not self._news.is_set():
                await self._client.ping()
            self._news.clear()

    async def _send_waiting(self) -> None:
        while self._waiting or self._noted < self._dropped:
            dropped = self._dropped
            batch = [self._waiting.popleft() for _ in range(min(len(self._waiting), BATCH))]
            try:
                await self._send(batch, must_note=self._noted < dropped)
            except (RedisError, OSError):
                self._dropped += len(batch)
                raise
            self._noted = dropped

    async def _send(self, batch: Sequence[Frame], *, must_note: bool) -> None:
        async with self._client.pipeline(transaction=False) as pipeline:
            for frame in batch:
                pipeline.publish(channel_of(frame.task_id), pack(frame, self._ring))
            if must_note:
                pipeline.publish(NOTES, pack(NOTE, self._ring))
            await pipeline.execute()

    def _tell_connected(self) -> None:
        if self._is_told:
            log.info("Redis at %s is there again: events are published", self._where)
        self.is_connected = self.was_connected = True
        self._is_told = False

    def _tell_lost(self, error: Exception) -> None:
        self.is_connected = False
        if not self._is_told:
            log.error("Redis at %s does not answer (%s): events reach streams by way of the store", self._where, error)
        self._is_told = True
