"""What stands before both transports: method, size, media type and signature, in this order (DESIGN: hooks).

Refusals here are HTTP statuses with a JSON body; nothing behind is reached.
"""

import asyncio
import re
from contextlib import suppress
from typing import Any, Final

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tiny_harness.errors import SignatureRefused
from tiny_harness.executors.switchboard import Caller
from tiny_harness.hooks.delivery import is_loopback
from tiny_harness.hooks.signature import Verifier
from tiny_harness.hooks.wire import MAX_BODY_BYTES, MEDIA_TYPE

CALLER: Final = "tiny_harness.caller"
"""Where in an ASGI scope the guard leaves who calls; `None` where calls are not signed."""
READ_TIMEOUT_S: Final = 10
"""How long a body may take to arrive."""
MAX_DRAIN_BYTES: Final = 16 << 20
"""What is read of a refused body: a connection that is closed before loses the refusal."""

WORDS: Final = {
    401: "UNAUTHENTICATED",
    403: "FORBIDDEN",
    405: "METHOD_NOT_ALLOWED",
    408: "REQUEST_TIMEOUT",
    413: "BODY_TOO_LARGE",
    415: "UNSUPPORTED_MEDIA_TYPE",
}


class _Refused(Exception):
    """Control flow of this file: what to answer instead."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class Guard:
    """Lets through what is small, JSON, and signed."""

    def __init__(self, app: ASGIApp, verifier: Verifier | None) -> None:
        """Guard an app.

        Args:
            app: Gets the body in one piece.
            verifier: `None` takes unsigned calls, from programs on this machine only.
        """
        self._app = app
        self._verifier = verifier

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or let it through."""
        headers = Headers(scope=scope)
        body = _Body(receive)
        try:
            self._check_head(scope, headers)
            scope[CALLER] = self._check_signature(scope, headers, await body.read())
        except _Refused as refused:
            await body.drain()
            await _refusal(refused, close=not body.is_complete)(scope, receive, send)
            return
        await self._app(scope, body.again, send)

    def _check_head(self, scope: Scope, headers: Headers) -> None:
        if self._verifier is None:
            _check_is_local(scope, headers)
        _check_head(scope, headers)

    def _check_signature(self, scope: Scope, headers: Headers, body: bytes) -> Caller | None:
        if self._verifier is None:
            return None
        try:
            call = self._verifier.check(scope["method"], _target(scope), headers, body)
        except SignatureRefused as error:
            raise _Refused(401, str(error)) from error
        return Caller(call.key_id, call.delivery_id, call.attempt)


def _check_head(scope: Scope, headers: Headers) -> None:
    if scope["method"] != "POST":
        raise _Refused(405, "only POST is understood")
    length = headers.get("content-length", "0")
    if not re.fullmatch("[0-9]{1,9}", length) or int(length) > MAX_BODY_BYTES:
        raise _Refused(413, f"a body has at most {MAX_BODY_BYTES} bytes")
    media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != MEDIA_TYPE:
        raise _Refused(415, f"the body must be {MEDIA_TYPE}")


def _check_is_local(scope: Scope, headers: Headers) -> None:
    """Refuse what may be a web page's doing: it can reach loopback, but not without an Origin or another Host."""
    client: tuple[str, int] | None = scope.get("client")
    host = headers.get("host", "").rpartition("]")[0].strip("[") or headers.get("host", "").partition(":")[0]
    if client is None or not is_loopback(client[0]) or not is_loopback(host) or "origin" in headers:
        raise _Refused(403, "calls are not signed here, so only programs on this machine may make them")


def _target(scope: Scope) -> str:
    """Give path and query as they stood in the request line."""
    query = scope["query_string"].decode("latin-1")
    path = scope.get("raw_path") or scope["path"].encode()
    return path.decode("latin-1") + (f"?{query}" if query else "")


class _Body:
    """A request's body, read with bounds."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._parts: list[bytes] = []
        self._size = 0
        self._is_given = False
        self._is_cut = False
        self.is_complete = False

    async def read(self) -> bytes:
        """Read it all."""
        try:
            async with asyncio.timeout(READ_TIMEOUT_S):
                while not self.is_complete:
                    self._parts.append(await self._next())
                    if self._size > MAX_BODY_BYTES:
                        raise _Refused(413, f"a body has at most {MAX_BODY_BYTES} bytes")
        except TimeoutError as error:
            raise _Refused(408, f"the body did not arrive within {READ_TIMEOUT_S} s") from error
        if self._is_cut:
            raise _Refused(408, "the body did not arrive")
        return b"".join(self._parts)

    async def drain(self) -> None:
        """Read the rest away, unless it is more than that is worth."""
        self._parts.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(READ_TIMEOUT_S):
                while not self.is_complete and self._size <= MAX_DRAIN_BYTES:
                    await self._next()

    async def again(self) -> Message:
        """Give it once more, in one piece, and then whatever the client does: a `Receive`."""
        if self._is_given:
            return await self._receive()
        self._is_given = True
        return {"type": "http.request", "body": b"".join(self._parts), "more_body": False}

    async def _next(self) -> bytes:
        message = await self._receive()
        self._is_cut |= message["type"] == "http.disconnect"
        part: bytes = message.get("body", b"")
        self._size += len(part)
        self.is_complete = not message.get("more_body", False)
        return part


def _refusal(refused: _Refused, *, close: bool) -> JSONResponse:
    word = WORDS[refused.status]
    body: dict[str, Any] = {"error": {"code": refused.status, "status": word, "message": refused.message}}
    headers = ({"Connection": "close"} if close else {}) | ({"Allow": "POST"} if refused.status == 405 else {})
    return JSONResponse(body, refused.status, headers)
