"""How often a participant may call: counted in Redis for all gateways together, or in this process alone."""

import logging
import math
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from limits import RateLimitItemPerMinute
from limits.aio.storage import MemoryStorage, Storage
from limits.aio.strategies import MovingWindowRateLimiter
from limits.errors import StorageError

from tiny_harness.bus import redis_url
from tiny_harness.settings import RedisSettings, Settings

if TYPE_CHECKING:
    from redis.asyncio import BlockingConnectionPool

log = logging.getLogger(__name__)

PREFIX: Final = "tiny-harness/rate"
"""Of the keys in Redis."""
AWAY_S: Final = 5.0
"""How long Redis is left alone once it did not answer: else every call would wait for it."""


class Rate:
    """So many calls in any minute. While Redis is away each gateway counts alone, from nothing.

    Args:
        per_minute: How many.
        shared: Counts for all gateways; without it this process counts.
        close: Closes what that holds.
        clock: Seconds, of whatever start.
    """

    def __init__(
        self,
        per_minute: int,
        shared: Storage | None = None,
        close: Callable[[], Awaitable[None]] | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.per_minute = per_minute
        self._item = RateLimitItemPerMinute(per_minute)
        self._alone = MovingWindowRateLimiter(MemoryStorage())
        self._shared = MovingWindowRateLimiter(shared) if shared is not None else None
        self._close = close
        self._clock = clock
        self._away_until: float | None = None

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Count while the block runs, and close connections at its end."""
        try:
            yield
        finally:
            if self._close is not None:
                await self._close()

    async def take(self, participant_id: str) -> int:
        """Count a call.

        Returns:
            Seconds to wait, at least 1, if it is one too many; else 0.
        """
        if self._shared is not None and (self._away_until is None or self._clock() >= self._away_until):
            try:
                wait = await self._count(self._shared, participant_id)
            except StorageError as error:
                self._goes_away(error)
            else:
                self._is_back()
                return wait
        return await self._count(self._alone, participant_id)

    async def _count(self, limiter: MovingWindowRateLimiter, participant_id: str) -> int:
        if await limiter.hit(self._item, participant_id):
            return 0
        window = await limiter.get_window_stats(self._item, participant_id)
        return max(1, math.ceil(window.reset_time - time.time()))

    def _goes_away(self, error: StorageError) -> None:
        if self._away_until is None:
            log.warning("Redis does not count calls now, each gateway counts alone: %s", error.storage_error)
        self._away_until = self._clock() + AWAY_S

    def _is_back(self) -> None:
        if self._away_until is not None:
            log.info("Redis counts calls again, for all gateways")
        self._away_until = None


def open_rate(settings: Settings) -> Rate:
    """Make the limit that the settings name, counted in Redis if they name one.

    Raises:
        ConfigError: See `redis_url`.
    """
    url, per_minute = redis_url(settings), settings.server.rate_limit_per_minute
    if url is None:
        return Rate(per_minute)
    from limits.aio.storage import RedisStorage  # late: local mode needs no Redis

    pool = _pool(url, settings.redis)
    prefix = f"{PREFIX}/{settings.temporal.task_queue}"
    options: dict[str, Any] = {"connection_pool": pool, "implementation": "redispy", "key_prefix": prefix}
    # The address is the pool's; this one only says what kind of storage it is.
    return Rate(per_minute, RedisStorage("async+redis://", wrap_exceptions=True, **options), pool.aclose)


def _pool(url: str, redis: RedisSettings) -> "BlockingConnectionPool":
    """Make connections of the gateway's own. Whoever finds all of them taken waits for one."""
    from redis.asyncio import BlockingConnectionPool
    from redis.asyncio.retry import Retry
    from redis.backoff import NoBackoff

    more: dict[str, Any] = {"ssl_ca_certs": str(redis.ca_file)} if redis.ca_file is not None else {}
    return BlockingConnectionPool.from_url(
        url,
        timeout=redis.timeout,
        socket_timeout=redis.timeout,
        socket_connect_timeout=redis.timeout,
        max_connections=redis.max_connections,
        retry=Retry(NoBackoff(), 0),  # its own retries would keep callers waiting
        **more,
    )
