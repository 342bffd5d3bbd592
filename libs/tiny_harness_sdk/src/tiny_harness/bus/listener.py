"""The gateway's side of Redis: one connection of a process, subscribed to the tasks that its streams watch."""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

from redis.asyncio import Redis
from redis.asyncio.client import PubSub
from redis.exceptions import ConnectionError as Disconnected
from redis.exceptions import RedisError
from redis.exceptions import TimeoutError as Silent

from tiny_harness.bus.port import Frame, Lagged
from tiny_harness.bus.wire import NOTES, channel_of, task_of, unpack
from tiny_harness.seal import SealRing

PING_INTERVAL_S: Final = 1.0
"""After so long without a message, Redis is asked whether it is there: a dead machine closes no connection."""
RETRY_INTERVAL_S: Final = 0.25

log = logging.getLogger(__name__)


class Listener:
    """Reads as a `BusReader`; a lost connection is noticed here, said once, and made anew for ever."""

    def __init__(self, client: Redis, ring: SealRing, where: str, timeout_s: float) -> None:
        self._client = client
        self._ring = ring
        self._where = where
        self._timeout_s = timeout_s
        self._watched: Counter[str] = Counter()
        self._asked: Counter[str] = Counter()
        """Subscriptions that Redis has not confirmed yet."""
        self._confirmed: dict[str, asyncio.Event] = {}
        self._pubsub: PubSub | None = None
        self._is_broken = False
        self._is_told = False
        self._has_told_unopened = False
        self.was_hearing = False

    @property
    def is_hearing(self) -> bool:
        """Whether frames arrive."""
        return self._pubsub is not None

    async def watch(self, task_id: str) -> None:
        """Receive a task's frames; returns when Redis has confirmed it, or is gone."""
        self._watched[task_id] += 1
        if self._pubsub is None:
            return  # it will be subscribed with all others, and then every stream looks at the store
        confirmed = self._confirmed.get(task_id)
        if confirmed is None:
            confirmed = self._confirmed[task_id] = asyncio.Event()
            self._asked[task_id] += 1
            await self._say(self._pubsub, "SUBSCRIBE", task_id)
        try:
            async with asyncio.timeout(self._timeout_s):
                await confirmed.wait()
        except TimeoutError:
            self._is_broken = True

    async def unwatch(self, task_id: str) -> None:
        """Undo one `watch`."""
        self._watched[task_id] -= 1
        if self._watched[task_id] > 0:
            return
        del self._watched[task_id]
        if self._confirmed.pop(task_id, None) and self._pubsub is not None:
            await self._say(self._pubsub, "UNSUBSCRIBE", task_id)

    async def frames(self) -> AsyncIterator[Frame | Lagged]:
        """Yield frames for ever; `Lagged` when the connection is lost, and when it is there again."""
        while True:
            was_hearing = False
            try:
                async with self._listening() as pubsub:
                    was_hearing = True
                    yield Lagged()
                    async for frame in self._received(pubsub):
                        yield frame
            except (RedisError, OSError) as error:
                self._tell_lost(error)
            if was_hearing:
                yield Lagged()
            await asyncio.sleep(RETRY_INTERVAL_S)

    @asynccontextmanager
    async def _listening(self) -> AsyncGenerator[PubSub]:
        """Connect, subscribed to all that is watched."""
        pubsub = self._client.pubsub()
        self._is_broken = False
        try:
            known = {NOTES}
            await self._subscribe(pubsub, known)
            while missing := set(map(channel_of, self._watched)) - known:
                await self._subscribe(pubsub, missing)
                known |= missing
            self._confirmed = {task_of(channel): _set() for channel in known - {NOTES}}
            self._asked.clear()
            self._pubsub = pubsub
            for task_id in self._confirmed.keys() - self._watched.keys():  # gone while it was subscribed
                del self._confirmed[task_id]
                await self._say(pubsub, "UNSUBSCRIBE", task_id)
            self._tell_connected()
            yield pubsub
        finally:
            self._pubsub = None
            for confirmed in self._confirmed.values():
                confirmed.set()
            self._confirmed.clear()
            await pubsub.aclose()

    async def _subscribe(self, pubsub: PubSub, channels: set[str]) -> None:
        """Subscribe, and wait for the word of Redis. What arrives before that is in the store."""
        await pubsub.subscribe(*channels)
        waiting = set(channels)
        while waiting:
            message = await self._next(pubsub)
            if message["type"] == "subscribe":
                waiting.discard(message["channel"].decode())

    async def _received(self, pubsub: PubSub) -> AsyncGenerator[Frame | Lagged]:
        while True:
            message = await self._next(pubsub)
            channel = message["channel"].decode()
            if message["type"] == "subscribe":
                self._confirm(task_of(channel))
            elif message["type"] == "message":
                frame = self._open(channel, message["data"])
                if frame is not None:
                    yield frame

    async def _next(self, pubsub: PubSub) -> dict[str, Any]:
        """Wait for the next message.

        Raises:
            RedisError: There is no connection any more, or nobody at its other end.
        """
        is_asked = False
        while True:
            message = await pubsub.get_message(timeout=self._timeout_s if is_asked else PING_INTERVAL_S)
            if self._is_broken:
                raise Disconnected("a subscription failed")
            if message is None and is_asked:
                raise Silent("no answer")
            if message is None:
                await pubsub.ping()
            elif message["type"] != "pong":
                return message
            is_asked = message is None

    def _open(self, channel: str, data: bytes) -> Frame | Lagged | None:
        task_id = NOTES if channel == NOTES else task_of(channel)
        frame = unpack(task_id, data, self._ring)
        if frame is None:
            if not self._has_told_unopened:
                log.warning("a message on the bus does not open, such are ignored: another ring, or another's message")
            self._has_told_unopened = True
            return None
        return Lagged() if channel == NOTES else frame

    def _confirm(self, task_id: str) -> None:
        self._asked[task_id] -= 1
        if self._asked[task_id] <= 0:
            del self._asked[task_id]
            if task_id in self._confirmed:
                self._confirmed[task_id].set()

    async def _say(self, pubsub: PubSub, command: str, task_id: str) -> None:
        """Send a command on the reader's connection; one that is gone is the reader's to notice and to mend."""
        connection: Any = pubsub.connection
        if connection is None or not connection.is_connected:  # redis-py would connect anew and tell nobody
            self._is_broken = True
            return
        try:
            act = pubsub.subscribe if command == "SUBSCRIBE" else pubsub.unsubscribe
            await act(channel_of(task_id))
        except (RedisError, OSError):
            self._is_broken = True
            with suppress(RedisError, OSError):
                await connection.disconnect()

    def _tell_connected(self) -> None:
        if self._is_told:
            log.info("Redis at %s is there again: streams follow it", self._where)
        self._is_told = False
        self.was_hearing = True

    def _tell_lost(self, error: Exception) -> None:
        if not self._is_told:
            log.error("Redis at %s does not answer (%s): streams ask the store twice a second", self._where, error)
        self._is_told = True


def _set() -> asyncio.Event:
    event = asyncio.Event()
    event.set()
    return event
