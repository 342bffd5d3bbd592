"""What is refused before anything is done: too large, too fast, the wrong type, too many streams."""

from collections import Counter
from typing import Final

from a2a.server.request_handlers.response_helpers import build_error_response
from a2a.utils.error_handlers import build_rest_error_payload
from a2a.utils.errors import ContentTypeNotSupportedError
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tiny_harness.contracts import Sender
from tiny_harness.errors import Unavailable
from tiny_harness_gateway.auth import CALLER
from tiny_harness_gateway.card import RPC_PATH
from tiny_harness_gateway.errors import plain_response
from tiny_harness_gateway.rate import Rate

JSON_TYPES: Final = frozenset({"application/json", "application/a2a+json"})
MAX_DRAINED_BYTES: Final = 16_000_000
"""How much of a body that is too large is read and dropped, so that its sender lives to read why."""
MAX_STREAMS_PER_PROCESS: Final = 5_000


class BodyLimit:
    """Reads a request's body, at most so many bytes of it, before anything behind sees the request."""

    def __init__(self, app: ASGIApp, max_bytes: int) -> None:
        self._app = app
        self._max_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not has_body(Headers(scope=scope)):
            return await self._app(scope, receive, send)
        chunks: list[bytes] = []
        size = 0
        while True:
            message = await receive()
            if message["type"] != "http.request":
                return None  # the client went away in the middle of its request: there is nothing to do
            size += len(message.get("body", b""))
            if size <= self._max_bytes:
                chunks.append(message.get("body", b""))
            if not message.get("more_body") or size > self._max_bytes + MAX_DRAINED_BYTES:
                break
        if size > self._max_bytes:
            refusal = plain_response(413, "too_large", f"a request may have {self._max_bytes} bytes")
            return await refusal(scope, receive, send)
        return await self._app(scope, replay(b"".join(chunks), receive), send)


class ContentType:
    """Lets JSON bodies pass (works around the A2A SDK 1.3, which does not look): else 415, with A2A's -32005."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            given = headers.get("content-type", "").partition(";")[0].strip().lower()
            if has_body(headers) and given not in JSON_TYPES:
                return await _wrong_type(scope["path"])(scope, receive, send)
        return await self._app(scope, receive, send)


class RateLimit:
    """Lets a participant make so many calls a minute; the rest are answered 429 with Retry-After."""

    def __init__(self, app: ASGIApp, rate: Rate) -> None:
        self._app = app
        self._rate = rate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        caller: Sender | None = scope.get(CALLER)
        wait = 0 if caller is None else await self._rate.take(caller.id)
        if wait:
            told = f"at most {self._rate.per_minute} calls a minute"
            return await plain_response(429, "too_fast", told, {"Retry-After": str(wait)})(scope, receive, send)
        return await self._app(scope, receive, send)


class StreamLimit:
    """Counts open streams: so many per participant, and all that one process can hold."""

    def __init__(self, per_participant: int) -> None:
        self.per_participant = per_participant
        self._open: Counter[str] = Counter()

    def take(self, participant_id: str) -> bool:
        """Take a place, to be given back with `release`; false if the participant has all of theirs.

        Raises:
            Unavailable: This process has no more.
        """
        if self._open.total() >= MAX_STREAMS_PER_PROCESS:
            raise Unavailable("this gateway has as many streams as it can hold")
        if self._open[participant_id] >= self.per_participant:
            return False
        self._open[participant_id] += 1
        return True

    def release(self, participant_id: str) -> None:
        """Give a place back."""
        self._open[participant_id] -= 1
        if not self._open[participant_id]:
            del self._open[participant_id]


def has_body(headers: Headers) -> bool:
    """Whether a request brings a body."""
    return headers.get("content-length", "0") != "0" or "transfer-encoding" in headers


def replay(body: bytes, receive: Receive) -> Receive:
    """Make a `receive` that gives the body once, and then what the connection says."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return waiting.pop() if waiting else await receive()

    return replay


def _wrong_type(path: str) -> JSONResponse:
    error = ContentTypeNotSupportedError(message="send application/json")
    if path.rstrip("/") == RPC_PATH:
        return JSONResponse(build_error_response(None, error), 415)
    payload = build_rest_error_payload(error)
    payload["error"]["code"] = 415
    return JSONResponse(payload, 415)
