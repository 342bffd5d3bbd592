"""The issuer's public keys: read anew now and then, and when a token names one that is not known (RFC 7517)."""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final

import httpx

from tiny_harness.background import in_background
from tiny_harness.errors import Unavailable
from tiny_harness.settings import AuthSettings
from tiny_harness_gateway.identity.jwk_set import IssuerKey, read_set

log = logging.getLogger(__name__)

FETCH_TIMEOUT_S: Final = 5.0
MAX_SET_BYTES: Final = 1_000_000

Read = Callable[[], Awaitable[bytes]]
"""Reads a JWK set; raises `OSError` or `httpx.HTTPError` if it cannot."""


class IssuerKeys:
    """Keeps the last set that could be read: a provider that is away locks nobody out.

    Args:
        read: Reads the set.
        settings: How often.
        clock: Seconds, of whatever start.
    """

    def __init__(self, read: Read, settings: AuthSettings, clock: Callable[[], float] = time.monotonic) -> None:
        self._read = read
        self._refresh_s = settings.refresh_interval
        self._refetch_s = settings.refetch_interval
        self._clock = clock
        self._keys: dict[str | None, IssuerKey] | None = None
        self._tried_at: float | None = None
        self._lock = asyncio.Lock()

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Read the set now and then, while the block runs."""
        async with in_background(self._run()):
            yield

    async def find(self, kid: Any) -> IssuerKey | None:
        """Find a key by its id; a token without one means the only key that there is.

        Raises:
            Unavailable: No set could be read yet.
        """
        if self._find(kid) is None:
            async with self._lock:  # all who wait for the same key wait for one reading
                if self._find(kid) is None and self._may_read():
                    await self._refresh()
        if self._keys is None:
            raise Unavailable("the identity provider's keys cannot be read")
        return self._find(kid)

    def _find(self, kid: Any) -> IssuerKey | None:
        if not self._keys:
            return None
        if kid is None and len(self._keys) == 1:
            return next(iter(self._keys.values()))
        return self._keys.get(kid) if isinstance(kid, str) else None

    def _may_read(self) -> bool:
        return self._tried_at is None or self._clock() - self._tried_at >= self._refetch_s

    async def _run(self) -> None:
        while True:
            async with self._lock:
                if self._may_read():
                    is_read = await self._refresh()
                else:
                    is_read = self._keys is not None
            await asyncio.sleep(self._refresh_s if is_read else self._refetch_s)

    async def _refresh(self) -> bool:
        """Read the set; on a failure the last one stays."""
        self._tried_at = self._clock()
        try:
            found = read_set(await self._read())
        except (OSError, httpx.HTTPError, ValueError) as error:
            log.warning("the identity provider's keys cannot be read, those known stay: %s", error)
            return False
        self._keys = found
        return True


def reader_of(settings: AuthSettings) -> Read:
    """Make what reads the set that the settings name."""
    if settings.jwks_file is not None:
        return partial(asyncio.to_thread, settings.jwks_file.read_bytes)
    return partial(_fetch, settings.jwks_url or "")


async def _fetch(url: str) -> bytes:
    """Fetch a set. Redirects are not followed: the configured address is what is trusted."""
    async with (
        asyncio.timeout(FETCH_TIMEOUT_S),
        httpx.AsyncClient(timeout=FETCH_TIMEOUT_S) as http,
        http.stream("GET", url, headers={"Accept": "application/json"}) as answer,
    ):
        if not answer.is_success:
            raise ValueError(f"{url} answered {answer.status_code}")
        body = b""
        async for piece in answer.aiter_bytes():
            body += piece
            if len(body) > MAX_SET_BYTES:
                raise ValueError(f"{url} answered more than {MAX_SET_BYTES} bytes")
        return body
