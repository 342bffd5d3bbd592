"""The service that is checked, as any stranger sees it: HTTP requests, signed well or badly, and what comes back."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import httpx
from pydantic import SecretStr
from pydantic_core import from_json

from tiny_harness.hooks.delivery import CONNECT_TIMEOUT_S, LOOPBACK, clean
from tiny_harness.hooks.signature import sign
from tiny_harness.hooks.wire import MAX_BODY_BYTES, MEDIA_TYPE
from tiny_harness.ids import new_id

ANSWER_S: Final = 5.0
"""Seconds within which everything must be answered: an executor's default deadline."""
CHUNK_BYTES: Final = 65_536


class Silence(Exception):
    """There was no answer; why."""

    def __init__(self, reason: str, *, is_refused: bool = False, is_late: bool = False) -> None:
        super().__init__(reason)
        self.is_refused = is_refused
        """Nobody listens there."""
        self.is_late = is_late


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP answer."""

    status: int
    media_type: str
    body: bytes
    """Cut a little above the bound."""

    @property
    def document(self) -> Any:
        """The JSON in it, `None` if it is none."""
        try:
            return from_json(self.body, allow_inf_nan=False)
        except ValueError:
            return None


class Peer:
    """The service, and the key that it is spoken to with."""

    def __init__(self, client: httpx.AsyncClient, url: str, key_id: str, secret: SecretStr | None) -> None:
        self._client = client
        self._url = httpx.URL(url)
        self.key_id = key_id
        self.secret = secret

    @property
    def is_signing(self) -> bool:
        """Whether calls are signed."""
        return self.secret is not None

    def signed(self, body: bytes, **changes: Any) -> dict[str, str]:
        """Make the headers of a good request; changes to what `sign` takes make it a bad one."""
        if self.secret is None:
            return {}
        fields: dict[str, Any] = {
            "secret": self.secret,
            "method": "POST",
            "path": self._url.raw_path.decode("ascii"),
            "key_id": self.key_id,
            "timestamp": int(time.time()),
            "delivery_id": new_id(),
            "attempt": 1,
            "body": body,
        }
        return sign(**{**fields, **changes})

    def headers(self, method: str, path: str, body: bytes, delivery_id: str, attempt: int) -> dict[str, str]:
        """Sign a request of MCP's client, as `Signs` says."""
        return self.signed(body, method=method, path=path, delivery_id=delivery_id, attempt=attempt)

    async def send(
        self,
        body: bytes,
        headers: Mapping[str, str],
        *,
        method: str = "POST",
        media_type: str = MEDIA_TYPE,
        in_chunks: bool = False,
    ) -> Answer:
        """Send a request.

        Raises:
            Silence: There is no answer.
        """
        content = _chunks(body) if in_chunks else body
        every = {"Accept": f"{MEDIA_TYPE}, text/event-stream", "Content-Type": media_type, **headers}
        try:
            async with (
                asyncio.timeout(ANSWER_S),  # httpx's own would let an answer drip for ever
                self._client.stream(method, self._url, content=content, headers=every) as response,
            ):
                answer = await _read(response)
        except httpx.ConnectError as error:
            raise Silence(f"cannot be connected to: {clean(str(error))}", is_refused=True) from error
        except (TimeoutError, httpx.TimeoutException) as error:
            raise Silence(f"no answer within {ANSWER_S:g} s", is_late=True) from error
        except httpx.HTTPError as error:
            raise Silence(f"the connection broke: {type(error).__name__} {clean(str(error))}".rstrip()) from error
        media_type = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        return Answer(response.status_code, media_type, answer)


def open_client() -> httpx.AsyncClient:
    """Open a client that keeps no connection: what one rule breaks, the next must not feel."""
    return httpx.AsyncClient(
        follow_redirects=False,
        timeout=httpx.Timeout(None, connect=CONNECT_TIMEOUT_S),
        limits=httpx.Limits(max_keepalive_connections=0),
        mounts=dict.fromkeys(LOOPBACK),
        headers={"Accept-Encoding": "identity"},
    )


async def _read(response: httpx.Response) -> bytes:
    answer = bytearray()
    async for chunk in response.aiter_raw():
        answer += chunk
        if len(answer) > MAX_BODY_BYTES:
            break
    return bytes(answer)


async def _chunks(body: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(body), CHUNK_BYTES):
        yield body[start : start + CHUNK_BYTES]
