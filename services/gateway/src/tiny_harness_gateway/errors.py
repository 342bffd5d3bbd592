"""Our errors as A2A errors and HTTP answers: the gateway's edge, in one table (DESIGN: security, the refusals)."""

from collections.abc import Callable
from typing import Any, Final

from a2a.utils import errors as a2a
from starlette.responses import JSONResponse
from starlette.types import Scope

from tiny_harness.errors import (
    AlreadyAnswered,
    DiskFull,
    HarnessError,
    InvalidInput,
    QueueFull,
    RefusedByPolicy,
    RoleNotPermitted,
    TaskEnded,
    TaskNotCancelable,
    TaskNotFound,
    Unavailable,
    UnresolvedSubTasks,
    UnsupportedContent,
)

# The SDK looks its errors up by exact class, so these are its own classes, never subclasses.
_TABLE: Final[dict[type[HarnessError], Callable[..., a2a.A2AError]]] = {
    TaskNotFound: a2a.TaskNotFoundError,
    TaskEnded: a2a.UnsupportedOperationError,
    TaskNotCancelable: a2a.TaskNotCancelableError,
    RoleNotPermitted: a2a.UnsupportedOperationError,
    AlreadyAnswered: a2a.UnsupportedOperationError,
    QueueFull: a2a.UnsupportedOperationError,
    RefusedByPolicy: a2a.UnsupportedOperationError,
    UnresolvedSubTasks: a2a.UnsupportedOperationError,
    InvalidInput: a2a.InvalidParamsError,
    UnsupportedContent: a2a.ContentTypeNotSupportedError,
}

_HTTP: Final[dict[type[HarnessError], int]] = {Unavailable: 503, DiskFull: 507}

REFUSAL: Final = "tiny_harness.refusal"
"""Key in the ASGI scope of a list: what it holds is an HTTP answer on every binding."""


def to_a2a(error: HarnessError) -> a2a.A2AError:
    """Translate an error; what is not in the table becomes an internal error of fixed words, see `refuse_in`."""
    make = _TABLE.get(type(error))
    if make is None:
        return a2a.InternalError(message=str(HarnessError()))
    return make(message=str(error), data=_metadata(error))


def refuse_in(scope: Scope, error: HarnessError) -> None:
    """Leave an error that is an HTTP status for the middleware that answers; others pass."""
    if type(error) in _HTTP:
        scope[REFUSAL].append(error)


def http_response(error: HarnessError) -> JSONResponse:
    """Answer an error that is an HTTP status."""
    status = _HTTP.get(type(error), 500)
    headers = {"Retry-After": str(error.retry_after_s)} if isinstance(error, Unavailable) else None
    return plain_response(status, error.code, str(error), headers)


def plain_response(status: int, code: str, message: str, headers: dict[str, str] | None = None) -> JSONResponse:
    """Answer with an HTTP status and a body that says what happened."""
    return JSONResponse({"error": {"code": status, "status": code.upper(), "message": message}}, status, headers)


def _metadata(error: HarnessError) -> dict[str, Any]:
    match error:
        case TaskEnded():
            return {"code": error.code, "state": error.state}
        case RoleNotPermitted():
            return {"code": error.code, "role": error.role}
        case AlreadyAnswered():
            return {"code": error.code, "request_id": error.request_id}
        case InvalidInput():
            return {"code": error.kind, "field": error.field}
        case UnsupportedContent():
            return {"code": error.code, "field": error.field}
        case QueueFull():
            return {"code": error.code, "limit": str(error.limit)}
        case RefusedByPolicy():
            return {"code": error.code, "reason": error.reason}
        case UnresolvedSubTasks():
            return {"code": error.code, "ids": ",".join(error.ids)}
        case _:
            return {}
