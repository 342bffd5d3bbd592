"""HTTP to an agent: to one origin only, credentials for nobody else, no redirect, everything that arrives bounded."""

from collections.abc import AsyncIterator, Mapping
from typing import Final

import httpx

from tiny_harness._version import __version__
from tiny_harness.hooks.delivery import CONNECT_TIMEOUT_S, KEEP_ALIVE_S, LOOPBACK

MAX_BODY_BYTES: Final = 8 * 1024 * 1024
"""Of an answer, or of one event of a stream."""
MAX_STREAM_BYTES: Final = 64 * 1024 * 1024
"""Of a whole stream; one that has more to say is opened again."""
MAX_CONNECTIONS: Final = 1_000

Origin = tuple[str, str, int | None]


class AgentTransport(httpx.AsyncBaseTransport):
    """All requests to one agent."""

    def __init__(self, url: str) -> None:
        """Open nothing yet; `url` says which origin may be called."""
        self._origin = origin(url)
        self._client = httpx.AsyncClient(
            follow_redirects=False,
            limits=httpx.Limits(max_connections=MAX_CONNECTIONS, keepalive_expiry=KEEP_ALIVE_S),
            mounts=dict.fromkeys(LOOPBACK),
        )
        self.headers: Mapping[str, str] = {}
        """Credentials, sent with every request. They win over what the A2A client sets."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request of the A2A client."""
        if origin(str(request.url)) != self._origin:
            raise httpx.UnsupportedProtocol("it is another server than the configured one")
        request.headers.update(self.headers)
        request.headers["Accept-Encoding"] = "identity"  # a bound is worth nothing if the answer may be unpacked
        request.headers["User-Agent"] = f"tiny-harness/{__version__}"
        request.extensions["timeout"] = {**request.extensions["timeout"], "connect": CONNECT_TIMEOUT_S}
        response = await self._client.send(request, stream=True, follow_redirects=False)
        if response.headers.get("Content-Encoding", "identity") != "identity":
            await response.aclose()
            raise httpx.DecodingError("its answer is compressed, which nobody asked for")
        is_stream = response.headers.get("Content-Type", "").lower().startswith("text/event-stream")
        stream = _Bounded(response, is_stream=is_stream)
        return httpx.Response(response.status_code, headers=response.headers, stream=stream)

    async def aclose(self) -> None:
        """Close all connections."""
        await self._client.aclose()


class _Bounded(httpx.AsyncByteStream):
    """An answer as it arrives, cut when it is too large: as a whole, or of a stream, one event."""

    def __init__(self, response: httpx.Response, *, is_stream: bool) -> None:
        self._response = response
        self._is_stream = is_stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size, total, is_line_end = 0, 0, False
        async for chunk in self._response.aiter_raw():
            size, total = size + len(chunk), total + len(chunk)
            if self._is_stream:
                size, is_line_end = _since_event(chunk, size, is_line_end)
            if size > MAX_BODY_BYTES or total > MAX_STREAM_BYTES:
                raise httpx.DecodingError(f"its answer is too large, of more than {MAX_BODY_BYTES} bytes")
            yield chunk

    async def aclose(self) -> None:
        await self._response.aclose()


def _since_event(chunk: bytes, size: int, is_line_end: bool) -> tuple[int, bool]:
    """Count from the last empty line, which ends an event, and whose two halves may come in two chunks."""
    text = (b"\n" if is_line_end else b"") + chunk.replace(b"\r\n", b"\n")
    at = text.rfind(b"\n\n")
    return (len(text) - at - 2 if at >= 0 else size), text.endswith(b"\n")


def origin(url: str) -> Origin:
    """Say where a URL leads: scheme, host and port, the scheme's own port too."""
    parts = httpx.URL(url)
    return parts.scheme, parts.host, parts.port or {"http": 80, "https": 443}.get(parts.scheme)
