"""Opens the bus that the settings name."""

import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Final

from tiny_harness.bus.local import LocalBus
from tiny_harness.bus.port import Bus
from tiny_harness.errors import ConfigError
from tiny_harness.seal import ring_of
from tiny_harness.settings import Settings, is_redis_url

VARIABLE: Final = "TINY_HARNESS_REDIS_URL"


def redis_url(settings: Settings, environ: Mapping[str, str] = os.environ) -> str | None:
    """Name the Redis to use: the variable's, which may hold a password, else the configuration's; `None`: no Redis.

    Raises:
        ConfigError: The variable is no such address; it is not shown.
    """
    url = environ.get(VARIABLE)
    if not url:
        return settings.redis.url
    if not is_redis_url(url):
        raise ConfigError(f"{VARIABLE} is no address such as rediss://user:password@host:6379/0")
    return url


@asynccontextmanager
async def open_bus(settings: Settings, environ: Mapping[str, str] = os.environ) -> AsyncGenerator[Bus]:
    """Open Redis if the settings name one, else a bus within this process.

    Raises:
        ConfigError: The address is none, certificates are named for one without TLS, or the seal's ring is malformed.
            That nobody answers at the address is no error here: see `Bus.health`.
    """
    url = redis_url(settings, environ)
    if url is None:
        yield LocalBus()
        return
    if settings.redis.ca_file and not url.startswith("rediss:"):
        raise ConfigError("is of no use without an address that begins with rediss://", key="redis.ca_file")
    from tiny_harness.bus.redis import open_redis_bus  # late: local mode needs no Redis

    async with open_redis_bus(url, settings.redis, ring_of(settings, environ)) as bus:
        yield bus
