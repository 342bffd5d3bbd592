"""MCP over streamable HTTP: to one origin only, with credentials for nobody else, everything that arrives bounded.

What goes wrong becomes an answer, never an exception: in MCP's client one broken request would end all others.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Final

import httpx2
import mcp_types as types

from tiny_harness._version import __version__
from tiny_harness.hooks.delivery import CONNECT_TIMEOUT_S, KEEP_ALIVE_S, LOOPBACK
from tiny_harness.plugins.servers import HttpServer
from tiny_harness_engine.tools.attempt import ATTEMPT, Attempt
from tiny_harness_engine.tools.words import one_line

MAX_BODY_BYTES: Final = 16 * 1024 * 1024
"""Of an answer, or of one event of a stream."""
MAX_CONNECTIONS: Final = 200
CLOSE_S: Final = 0.5
"""How long the end of a session may take."""
LATE_S: Final = 2.0
"""After a call was given up, its connection is kept for the notice of that, then cut."""
_BEFORE_RUNNING: Final = range(400, 500)
_PASSING: Final = (404, 408, 425, 429)
"""Of these: the session was forgotten, or there is too much to do."""


class _Broken(Exception):
    """A request got no answer that can be used."""

    def __init__(self, reason: str, *, is_passing: bool = False) -> None:
        super().__init__(reason)
        self.is_passing = is_passing


class HttpLink(httpx2.AsyncBaseTransport):
    """All requests to one server."""

    def __init__(self, server: HttpServer, secrets: Mapping[str, str]) -> None:
        """Open nothing yet.

        Args:
            server: Where, and what is sent along.
            secrets: Headers with credentials. They win over declared ones, and those of MCP's client over both.
        """
        self._origin = _origin(httpx2.URL(server.url))
        names = {name.lower() for name in secrets}
        declared = {name: value for name, value in server.headers.items() if name.lower() not in names}
        self._headers = {**declared, **secrets}
        self._client = httpx2.AsyncClient(
            follow_redirects=False,
            timeout=httpx2.Timeout(None, connect=CONNECT_TIMEOUT_S),
            limits=httpx2.Limits(max_connections=MAX_CONNECTIONS, keepalive_expiry=KEEP_ALIVE_S),
            mounts=dict.fromkeys(LOOPBACK),
        )
        self.fault = ""
        """What went wrong last."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request of MCP's client."""
        attempt = ATTEMPT.get()
        is_first = (
            attempt is not None and not attempt.is_sent
        )  # later ones resume its answer, or say that it is given up
        try:
            async with asyncio.timeout_at(_patience(request, attempt)):
                response = await self._send(request, attempt)
                if response.headers.get("Content-Type", "").lower().startswith("text/event-stream"):
                    stream = _Stream(response, attempt)
                    return httpx2.Response(response.status_code, headers=response.headers, stream=stream)
                body = await _body(response)
            if is_first and response.is_success and _document(body) is None:
                raise _Broken("its answer is not JSON-RPC")
        except (_Broken, httpx2.TransportError, TimeoutError) as error:
            return self._answer(request, attempt, error)
        status = response.status_code
        is_said = status == 400 and isinstance((_document(body) or {}).get("error"), dict)  # in MCP's own words
        if status >= 400 and not is_said:
            self._note(attempt, f"it answered HTTP {status}{_reason(body)}", status >= 500 or status in _PASSING)
            if attempt is not None and is_first:
                attempt.is_refused = status in _BEFORE_RUNNING
        return httpx2.Response(response.status_code, headers=response.headers, content=body)

    async def aclose(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    async def _send(self, request: httpx2.Request, attempt: Attempt | None) -> httpx2.Response:
        if _origin(request.url) != self._origin:
            raise _Broken("it is another server than the configured one")
        for name, value in self._headers.items():
            if name not in request.headers:
                request.headers[name] = value
        request.headers["Accept-Encoding"] = "identity"  # a bound is worth nothing if the answer may be unpacked
        request.headers["User-Agent"] = f"tiny-harness/{__version__}"
        was_sent = attempt is not None and attempt.is_sent
        if attempt is not None:
            request.extensions["trace"] = _watcher(attempt)
        try:
            response = await self._client.send(request, stream=True, follow_redirects=False)
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            reason = f"it cannot be connected to: {_words(error) or 'no answer in time'}"
            raise _Broken(reason, is_passing=True) from error
        fault = _fault(response)
        if fault:
            await response.aclose()
            if attempt is not None and not was_sent:
                attempt.is_refused = response.is_redirect
            raise _Broken(fault)
        return response

    def _answer(self, request: httpx2.Request, attempt: Attempt | None, error: Exception) -> httpx2.Response:
        if isinstance(error, _Broken):
            reason = str(error)
        elif isinstance(error, TimeoutError):
            reason = "it did not answer in time"
        else:
            reason = f"the connection broke: {type(error).__name__} {_words(error)}".rstrip()
        self._note(attempt, reason, not isinstance(error, _Broken) or error.is_passing)
        document: dict[str, Any] = {
            "jsonrpc": "2.0",
            "id": None,
            "error": {"code": types.CONNECTION_CLOSED, "message": reason},
        }
        return httpx2.Response(502, json=document, request=request)

    def _note(self, attempt: Attempt | None, reason: str, is_passing: bool) -> None:
        self.fault = reason
        if attempt is not None:
            attempt.fault, attempt.is_passing = reason, is_passing


class _Stream(httpx2.AsyncByteStream):
    """The events of an answer; those of a call end when nobody waits for them any more."""

    def __init__(self, response: httpx2.Response, attempt: Attempt | None) -> None:
        self._response = response
        self._attempt = attempt

    async def __aiter__(self) -> AsyncIterator[bytes]:
        chunks = self._response.aiter_raw()
        end = None if self._attempt is None else self._attempt.give_up_at + LATE_S
        while True:
            try:
                async with asyncio.timeout_at(end):
                    chunk = await anext(chunks, None)
            except TimeoutError as error:
                raise httpx2.ReadTimeout("nobody waits for it any more") from error
            except httpx2.TransportError as error:
                if self._attempt is not None:
                    self._attempt.fault = f"the connection broke: {type(error).__name__} {_words(error)}".rstrip()
                raise
            if chunk is None:
                return
            yield chunk

    async def aclose(self) -> None:
        await self._response.aclose()


def _watcher(attempt: Attempt) -> Callable[[str, Any], Awaitable[None]]:
    """Take note of the first byte that leaves, on whatever connection, and keep it back if nobody waits any more."""

    async def watch(event: str, _info: Any) -> None:
        if event.endswith("send_request_headers.started"):
            if attempt.is_abandoned and not attempt.is_sent:
                raise _Broken("nobody waits for it any more")
            attempt.is_sent = True

    return watch


def _patience(request: httpx2.Request, attempt: Attempt | None) -> float | None:
    now = asyncio.get_running_loop().time()
    if request.method == "DELETE":
        return now + CLOSE_S
    return None if attempt is None else attempt.give_up_at + LATE_S


async def _body(response: httpx2.Response) -> bytes:
    parts: list[bytes] = []
    size = 0
    try:
        async for chunk in response.aiter_raw():
            size += len(chunk)
            if size > MAX_BODY_BYTES:
                raise _Broken(f"its answer has more than {MAX_BODY_BYTES} bytes")
            parts.append(chunk)
    finally:
        await response.aclose()
    return b"".join(parts)


def _fault(response: httpx2.Response) -> str:
    if response.is_redirect:
        return f"it answered HTTP {response.status_code}: redirects are never followed"
    if response.headers.get("Content-Encoding", "identity") != "identity":
        return "its answer is compressed, which nobody asked for"
    return ""


def _document(body: bytes) -> dict[str, Any] | None:
    """Read a JSON object; `None`: it is none."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _origin(url: httpx2.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port


def _reason(body: bytes) -> str:
    words = one_line(body[:2000].decode(errors="replace"), 200)
    return f": {words}" if words else ""


def _words(error: Exception) -> str:
    return one_line(str(error), 200)
