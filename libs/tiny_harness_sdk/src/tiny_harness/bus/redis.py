"""The bus through Redis, for engines and gateways in processes of their own. Redis keeps nothing."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from tiny_harness.background import in_background
from tiny_harness.bus.listener import Listener
from tiny_harness.bus.port import BusHealth, BusReader, Frame
from tiny_harness.bus.publisher import Publisher
from tiny_harness.seal import SealRing
from tiny_harness.settings import RedisSettings


class RedisBus:
    """Publishes by one connection of the process, and reads by another. Open with `open_redis_bus`."""

    def __init__(self, client: Redis, ring: SealRing, where: str, timeout_s: float) -> None:
        self._client = client
        self._ring = ring
        self._where = where
        self._timeout_s = timeout_s
        self.publisher = Publisher(client, ring, where)
        self._listeners: set[Listener] = set()

    @property
    def health(self) -> BusHealth:
        """Whether all of this process's connections are there."""
        listeners, publisher = self._listeners, self.publisher
        return BusHealth(
            is_reached=publisher.is_connected and all(listener.is_hearing for listener in listeners),
            was_reached=publisher.was_connected and all(listener.was_hearing for listener in listeners),
        )

    def publish(self, frame: Frame) -> None:
        """Hand a frame over; never blocks, never fails."""
        self.publisher.offer(frame)

    @asynccontextmanager
    async def open_reader(self) -> AsyncGenerator[BusReader]:
        """Open a reader; it connects when its frames are asked for."""
        listener = Listener(self._client, self._ring, self._where, self._timeout_s)
        self._listeners.add(listener)
        try:
            yield listener
        finally:
            self._listeners.discard(listener)


@asynccontextmanager
async def open_redis_bus(url: str, settings: RedisSettings, ring: SealRing) -> AsyncGenerator[RedisBus]:
    """Open the bus. A Redis that does not answer is told by its health and the log, and waited for."""
    more: dict[str, Any] = {"ssl_ca_certs": str(settings.ca_file)} if settings.ca_file else {}
    client: Redis = Redis.from_url(
        url,
        socket_timeout=settings.timeout,
        socket_connect_timeout=settings.timeout,
        max_connections=settings.max_connections,
        retry=Retry(NoBackoff(), 0),  # its own retries would hide an outage for seconds
        **more,
    )
    parts = urlsplit(url)
    where = f"{parts.hostname}:{parts.port or 6379}" if parts.hostname else parts.path
    bus = RedisBus(client, ring, where, settings.timeout)
    try:
        async with in_background(bus.publisher.run()):
            yield bus
    finally:
        await client.aclose()
