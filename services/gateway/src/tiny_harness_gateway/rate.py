"""How often a participant may call: counted in Redis for all gateways together, or in this process alone."""

import logging
import math
import time
from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit

from limits import RateLimitItemPerMinute
from limits.aio.storage import MemoryStorage, Storage
from limits.aio.strategies import MovingWindowRateLimiter
from limits.errors import StorageError

from tiny_harness.bus import redis_url
from tiny_harness.settings import Settings

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
        clock: Seconds, of whatever start.
    """

    def __init__(
        self, per_minute: int, shared: Storage | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.per_minute = per_minute
        self._item = RateLimitItemPerMinute(per_minute)
        self._alone = MovingWindowRateLimiter(MemoryStorage())
        self._shared = MovingWindowRateLimiter(shared) if shared is not None else None
        self._clock = clock
        self._away_until: float | None = None

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
    url = redis_url(settings)
    return Rate(settings.server.rate_limit_per_minute, None if url is None else _redis(url, settings))


def _redis(url: str, settings: Settings) -> Storage:
    from limits.aio.storage import RedisStorage  # late: local mode needs no Redis
    from redis.asyncio.retry import Retry
    from redis.backoff import NoBackoff

    redis = settings.redis
    options: dict[str, object] = {
        "socket_timeout": redis.timeout,
        "socket_connect_timeout": redis.timeout,
        "max_connections": redis.max_connections,
        "retry": Retry(NoBackoff(), 0),  # its own retries would keep callers waiting
    }
    if redis.ca_file is not None:
        options["ssl_ca_certs"] = str(redis.ca_file)
    scheme = "redis+unix" if urlsplit(url).scheme == "unix" else urlsplit(url).scheme
    address = f"async+{scheme}{url[len(urlsplit(url).scheme) :]}"
    prefix = f"{PREFIX}/{settings.temporal.task_queue}"
    return RedisStorage(address, wrap_exceptions=True, implementation="redispy", key_prefix=prefix, **options)  # pyright: ignore[reportArgumentType] - they are redis-py's
