"""What is refused before anything is done: too large, too fast, the wrong type."""

import math
import time
from typing import Final

from limits import RateLimitItemPerMinute
from limits.aio.storage import MemoryStorage
from limits.aio.strategies import MovingWindowRateLimiter
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tiny_harness.contracts import Sender
from tiny_harness_gateway.auth import CALLER
from tiny_harness_gateway.errors import plain_response

JSON_TYPES: Final = frozenset({"application/json", "application/a2a+json"})


class BodyLimit:
    """Reads a request's body, at most so many bytes of it, before anything behind sees the request."""

    def __init__(self, app: ASGIApp, max_bytes: int) -> None:
        self._app = app
        self._max_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD", "OPTIONS"):
            return await self._app(scope, receive, send)
        headers = Headers(scope=scope)
        has_body = headers.get("content-length", "0") != "0" or "transfer-encoding" in headers
        if has_body and headers.get("content-type", "").partition(";")[0].strip().lower() not in JSON_TYPES:
            refusal = plain_response(415, "unsupported_content", "send application/json")
            return await refusal(scope, receive, send)
        body = await self._read(headers, receive)
        if body is None:
            refusal = plain_response(413, "too_large", f"a request may have {self._max_bytes} bytes")
            return await refusal(scope, receive, send)
        return await self._app(scope, _replay(body, receive), send)

    async def _read(self, headers: Headers, receive: Receive) -> bytes | None:
        length = headers.get("content-length", "")
        if length.isdecimal() and int(length) > self._max_bytes:
            return None
        chunks: list[bytes] = []
        size = 0
        while True:
            message = await receive()
            if message["type"] != "http.request":
                return b"".join(chunks)
            chunks.append(message.get("body", b""))
            size += len(chunks[-1])
            if size > self._max_bytes:
                return None
            if not message.get("more_body"):
                return b"".join(chunks)


def _replay(body: bytes, receive: Receive) -> Receive:
    """Make a `receive` that gives the body once, and then what the connection says."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return waiting.pop() if waiting else await receive()

    return replay


class RateLimit:
    """Lets a participant make so many calls a minute; the rest are answered 429 with Retry-After."""

    def __init__(self, app: ASGIApp, per_minute: int) -> None:
        self._app = app
        self._item = RateLimitItemPerMinute(per_minute)
        self._limiter = MovingWindowRateLimiter(MemoryStorage())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        caller: Sender | None = scope.get(CALLER)
        if caller is not None and not await self._limiter.hit(self._item, caller.id):
            window = await self._limiter.get_window_stats(self._item, caller.id)
            wait = max(1, math.ceil(window.reset_time - time.time()))
            refusal = plain_response(
                429, "too_fast", f"at most {self._item.amount} calls a minute", {"Retry-After": str(wait)}
            )
            return await refusal(scope, receive, send)
        return await self._app(scope, receive, send)
