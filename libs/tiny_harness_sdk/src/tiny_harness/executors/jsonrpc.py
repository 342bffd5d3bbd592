"""The JSON-RPC 2.0 transport: `jsonrpcserver` behind bounds and an error mapping of our own.

The library would run batches of any size at once and tell callers what an exception said; neither happens here.
"""

import json
import warnings
from functools import partial
from typing import Any, Final

from pydantic_core import from_json
from starlette.requests import Request
from starlette.responses import Response

from tiny_harness.executors.answers import Aborted, Answer, Failed, Invalid, Patched, Unknown
from tiny_harness.executors.guard import CALLER
from tiny_harness.executors.switchboard import Caller, Switchboard
from tiny_harness.hooks.wire import (
    ABORTED,
    EXECUTOR_FAILED,
    FAILED_WORDS,
    HEALTH_METHOD,
    INVALID_PARAMS,
    INVALID_REQUEST,
    MAX_BODY_BYTES,
    MEDIA_TYPE,
    PARSE_ERROR,
    UNKNOWN_METHOD,
)
from tiny_harness.ids import new_id

with warnings.catch_warnings():
    # jsonrpcserver 5.0.9 reads its schema by a function that Python 3.11 deprecates; nothing else of it warns.
    warnings.filterwarnings("ignore", "(read|open)_text is deprecated", DeprecationWarning)
    from jsonrpcserver import Error, Result, Success
    from jsonrpcserver.async_main import dispatch_to_serializable

MAX_ID_CHARS: Final = 128

MESSAGES: Final = {
    PARSE_ERROR: "the body is no JSON",
    INVALID_REQUEST: "the body is no JSON-RPC request; batches and notifications are not taken",
    UNKNOWN_METHOD: "there is no such method here",
    INVALID_PARAMS: "the parameters are malformed",
    EXECUTOR_FAILED: FAILED_WORDS,
}
"""All that is ever said beside a result, an abort's reason, and the place of a malformed field."""


class JsonRpc:
    """The endpoint."""

    def __init__(self, switchboard: Switchboard) -> None:
        self._switchboard = switchboard
        self._methods: dict[str, Any] = {point: partial(self._call, point) for point in switchboard.points}
        self._methods[HEALTH_METHOD] = self._health

    async def respond(self, request: Request) -> Response:
        """Answer one call."""
        try:
            document = from_json(await request.body(), allow_inf_nan=False)
        except ValueError:
            return _response(_error(None, PARSE_ERROR))
        if not _is_call(document):
            return _response(_error(None, INVALID_REQUEST))
        answer = await dispatch_to_serializable(
            "", self._methods, context=request.scope[CALLER], deserializer=partial(_parsed, document)
        )
        assert isinstance(answer, dict)  # one call in, one answer out
        return _response(_mapped(answer, document["id"]))

    async def _call(self, point: str, caller: Caller | None, /, context: dict[str, Any]) -> Result:
        return _result(await self._switchboard.answer(point, context, caller))

    async def _health(self, _caller: Caller | None, /) -> Result:
        return Success(self._switchboard.health())


def _parsed(document: Any, _: str) -> Any:
    """Stand in for the library's parser: it has been done, with bounds."""
    return document


def _is_call(document: Any) -> bool:
    """Whether this is one object with an id: the library would run a batch, and a notification without an answer."""
    if not isinstance(document, dict):
        return False
    number = document.get("id")
    if not isinstance(number, str | int) or isinstance(number, bool):
        return False
    return len(str(number)) <= MAX_ID_CHARS and str(number).isascii()


def _result(answer: Answer) -> Result:
    match answer:
        case Patched(patch):
            return Success(patch)
        case Aborted(reason):
            return Error(ABORTED, reason, {"reason": reason})
        case Failed(correlation_id):
            return Error(EXECUTOR_FAILED, FAILED_WORDS, {"correlation_id": correlation_id})
        case Invalid(field):
            return Error(INVALID_PARAMS, MESSAGES[INVALID_PARAMS], {"field": field})
        case Unknown():
            return Error(UNKNOWN_METHOD, MESSAGES[UNKNOWN_METHOD], None)


def _mapped(answer: dict[str, Any], number: str | int) -> dict[str, Any]:
    """Keep results and our own errors; put the library's into our words, since its tell more than they should."""
    error = answer.get("error")
    if error is None:
        return answer
    data = error.get("data") if isinstance(error.get("data"), dict) else None
    if error["code"] == ABORTED or (data is not None and error["message"] == MESSAGES.get(error["code"])):
        return answer
    code = error["code"] if error["code"] in MESSAGES else EXECUTOR_FAILED
    answered_id = None if code == INVALID_REQUEST else number
    return _error(answered_id, code, {"correlation_id": new_id()} if code == EXECUTOR_FAILED else None)


def _error(number: str | int | None, code: int, data: dict[str, Any] | None = None) -> dict[str, Any]:
    error = {"code": code, "message": MESSAGES[code]} | ({"data": data} if data else {})
    return {"jsonrpc": "2.0", "id": number, "error": error}


def _response(document: dict[str, Any]) -> Response:
    body = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")
    assert len(body) <= MAX_BODY_BYTES  # patches, reasons and ids have bounds of their own
    return Response(body, media_type=MEDIA_TYPE)
