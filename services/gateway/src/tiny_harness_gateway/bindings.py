"""The two bindings of A2A as the streaming routes need them: how events are framed and errors told."""

import json
import logging
from typing import Any, Final, Protocol

from a2a.server.jsonrpc_models import JSONParseError as JSONRPCParseError
from a2a.server.request_handlers.response_helpers import build_error_response
from a2a.utils.error_handlers import build_rest_error_payload
from a2a.utils.errors import A2AError, InvalidRequestError, JSONParseError
from starlette.responses import JSONResponse, Response

from tiny_harness.errors import DiskFull, HarnessError, Unavailable
from tiny_harness_gateway.errors import http_response, to_a2a

log = logging.getLogger(__name__)


class Binding(Protocol):
    """How one call is answered."""

    def frame(self, seq: int | None, payload: str) -> bytes:
        """Frame a StreamResponse as a server-sent event; with a number it is a cursor to resume from."""
        ...

    def refuse(self, error: A2AError) -> Response:
        """Answer an error, before the first event."""
        ...


class JsonRpc:
    """JSON-RPC: events carry the caller's request id, errors are answers of status 200."""

    def __init__(self, request_id: Any) -> None:
        self._request_id = request_id
        self._head = f'{{"jsonrpc":"2.0","id":{json.dumps(request_id)},"result":'

    def frame(self, seq: int | None, payload: str) -> bytes:
        return f"{_cursor(seq)}data: {self._head}{payload}}}\n\n".encode()

    def refuse(self, error: A2AError) -> Response:
        if isinstance(error, JSONParseError):  # has no ErrorInfo: nothing of A2A was read yet
            return JSONResponse(build_error_response(None, JSONRPCParseError(message=error.message)))
        return JSONResponse(build_error_response(self._request_id, error))


class Rest:
    """HTTP+JSON: events are bare, errors have their HTTP status."""

    def frame(self, seq: int | None, payload: str) -> bytes:
        return f"{_cursor(seq)}data: {payload}\n\n".encode()

    def refuse(self, error: A2AError) -> Response:
        if isinstance(error, JSONParseError):  # JSON-RPC's alone; REST says that the request is malformed
            error = InvalidRequestError(message=error.message)
        payload = build_rest_error_payload(error)
        return JSONResponse(payload, payload["error"]["code"])


REST: Final = Rest()


def refusal(binding: Binding, error: Exception) -> Response:
    """Answer any error of a call, before its first event."""
    if isinstance(error, A2AError):
        return binding.refuse(error)
    if isinstance(error, (Unavailable, DiskFull)):
        return http_response(error)
    if isinstance(error, HarnessError):
        return binding.refuse(to_a2a(error))
    log.error("a call failed", exc_info=error)
    return binding.refuse(to_a2a(HarnessError()))


def _cursor(seq: int | None) -> str:
    return "" if seq is None else f"id: {seq}\n"
