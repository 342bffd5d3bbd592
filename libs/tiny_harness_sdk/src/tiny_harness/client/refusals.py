"""Turns what the A2A client and HTTP raise into our own tree of errors.

A2A errors are told apart by their class and by `metadata.code` of their ErrorInfo (DESIGN: security); HTTP statuses by
number; everything below HTTP is a lost connection.
"""

import json
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, Final

import httpx
from a2a.client.errors import A2AClientError, A2AClientTimeoutError
from a2a.utils.errors import (
    A2AError,
    ContentTypeNotSupportedError,
    InvalidParamsError,
    TaskNotCancelableError,
    TaskNotFoundError,
)
from google.protobuf.json_format import ParseError

from tiny_harness.errors import (
    AlreadyAnswered,
    ConnectionLost,
    HarnessError,
    InvalidInput,
    QueueFull,
    RefusedByPolicy,
    RoleNotPermitted,
    ServerRefused,
    SignInRefused,
    TaskEnded,
    TaskNotCancelable,
    TaskNotFound,
    Unavailable,
    UnresolvedSubTasks,
    UnsupportedContent,
)

Details = dict[str, Any]

HTTP_UNAUTHENTICATED: Final = 401
HTTP_UNAVAILABLE: Final = 503
FOREIGN_PARTICIPANT: Final = "foreign_participant"
HTTP_TOO_MANY: Final = 429
_PROMISE: Final = str(Unavailable(""))
_REFUSED: Final = str(RefusedByPolicy(""))
DEFAULT_RETRY_AFTER_S: Final = 1


@contextmanager
def translated(task_id: str = "") -> Generator[None]:
    """Raise our errors for those of the A2A client.

    Args:
        task_id: The task that the call is about, for errors that name it.
    """
    try:
        yield
    except A2AError as error:
        raise _from_a2a(error, task_id) from error
    except httpx.HTTPError as error:
        raise ConnectionLost(str(error) or type(error).__name__) from error
    except ParseError as error:
        raise ServerRefused("the server's answer is not A2A 1.0") from error
    except NotImplementedError as error:
        raise ServerRefused("the server does not stream") from error


def _from_a2a(error: A2AError, task_id: str) -> HarnessError:
    if isinstance(error, A2AClientError):
        return _from_transport(error)
    details: Details = error.data or {}
    by_code = _BY_CODE.get(str(details.get("code", "")))
    if isinstance(error, TaskNotFoundError):
        return TaskNotFound(task_id)
    if isinstance(error, TaskNotCancelableError):
        return TaskNotCancelable(task_id, str(details.get("state", "ended")))
    if by_code is not None:
        return by_code(task_id, details, error.message)
    if isinstance(error, InvalidParamsError):
        kind = str(details.get("code", "invalid_params"))
        return InvalidInput(kind, str(details.get("field", "params")), _reason(details, error.message))
    if isinstance(error, ContentTypeNotSupportedError):
        return UnsupportedContent(str(details.get("field", "message")), _reason(details, error.message))
    return ServerRefused(error.message, server_code=str(details.get("code", "")))


def _reason(details: Details, message: str) -> str:
    # The server's sentence starts with the field already, as our own `InvalidInput` prints it.
    return str(details.get("reason") or message.removeprefix(f"{details.get('field', '')}: "))


def _ids(found: Any) -> tuple[str, ...]:
    return tuple(part for word in str(found or "").split(",") if (part := word.strip()))


_BY_CODE: dict[str, Callable[[str, Details, str], HarnessError]] = {
    "task_ended": lambda task_id, details, _: TaskEnded(task_id, str(details.get("state", "ended"))),
    "role_not_permitted": lambda _, details, message: RoleNotPermitted(
        str(details.get("role", "participant")), message.partition(" may not ")[2] or "do this"
    ),
    "already_answered": lambda _, details, __: AlreadyAnswered(str(details.get("request_id", ""))),
    "queue_full": lambda _, details, __: QueueFull(int(float(details.get("limit", 100)))),
    "refused_by_policy": lambda _, details, message: RefusedByPolicy(
        str(details.get("reason") or message.removeprefix(_REFUSED))
    ),
    "unresolved_sub_tasks": lambda task_id, details, _: UnresolvedSubTasks(task_id, _ids(details.get("ids"))),
}


def _from_transport(error: A2AClientError) -> HarnessError:
    cause = error.__cause__
    if isinstance(cause, httpx.HTTPStatusError):
        return _from_status(cause.response)
    if isinstance(cause, httpx.RequestError):
        return ConnectionLost(str(cause) or type(cause).__name__)
    if isinstance(error, A2AClientTimeoutError):
        return ConnectionLost(error.message)
    return ServerRefused(error.message)


def _from_status(response: httpx.Response) -> HarnessError:
    message, code = _read_body(response)
    if response.status_code in (HTTP_UNAVAILABLE, HTTP_TOO_MANY):
        after = response.headers.get("retry-after", "")
        reason = message.removesuffix(_PROMISE) or "the harness cannot answer now"
        return Unavailable(reason, int(after) if after.isdecimal() else DEFAULT_RETRY_AFTER_S)
    if response.status_code == HTTP_UNAUTHENTICATED or code == FOREIGN_PARTICIPANT:
        return SignInRefused(message or "the server wants credentials", response.status_code, code)
    words = message or f"the server answered {response.status_code} {response.reason_phrase}"
    return ServerRefused(words, status=response.status_code, server_code=code)


def _read_body(response: httpx.Response) -> tuple[str, str]:
    """Find a message and a code in a refusal's body, which may be anything."""
    try:
        body = json.loads(response.content)
    except (ValueError, httpx.StreamError):
        return "", ""
    error = body.get("error", body) if isinstance(body, dict) else None
    if not isinstance(error, dict):
        return "", ""
    details = error.get("details") or error.get("data") or []
    found = [d.get("metadata") for d in details if isinstance(d, dict)] if isinstance(details, list) else []
    codes = [str(metadata["code"]) for metadata in found if isinstance(metadata, dict) and "code" in metadata]
    message = error.get("message", "")
    return (message if isinstance(message, str) else ""), (codes[0] if codes else str(error.get("status", "")).lower())
