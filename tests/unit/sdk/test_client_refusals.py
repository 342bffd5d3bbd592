"""What the A2A client raises, as our errors."""

import httpx
import pytest
from a2a.client.errors import A2AClientError, A2AClientTimeoutError
from a2a.utils.errors import (
    A2AError,
    ContentTypeNotSupportedError,
    InternalError,
    InvalidParamsError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnsupportedOperationError,
)

from tiny_harness.client.refusals import translated
from tiny_harness.errors import (
    AlreadyAnswered,
    ConnectionLost,
    HarnessError,
    InvalidInput,
    QueueFull,
    RefusedByPolicy,
    RoleNotPermitted,
    ServerRefused,
    TaskEnded,
    TaskNotCancelable,
    TaskNotFound,
    Unavailable,
    UnresolvedSubTasks,
    UnsupportedContent,
)

ENDED = {"code": "task_ended", "state": "COMPLETED"}


def raised(error: Exception) -> HarnessError:
    with pytest.raises(HarnessError) as found, translated("t"):
        raise error
    return found.value


def by_status(status: int, body: object = None, **headers: str) -> A2AClientError:
    response = httpx.Response(status, json=body, headers=headers, request=httpx.Request("POST", "http://localhost"))
    error = A2AClientError("HTTP Error")
    error.__cause__ = httpx.HTTPStatusError("", request=response.request, response=response)
    return error


@pytest.mark.parametrize(
    ("error", "kind", "attributes"),
    [
        (TaskNotFoundError("x"), TaskNotFound, {"task_id": "t"}),
        (TaskNotCancelableError("x", ENDED), TaskNotCancelable, {"task_id": "t", "state": "COMPLETED"}),
        (UnsupportedOperationError("x", ENDED), TaskEnded, {"task_id": "t", "state": "COMPLETED"}),
        (
            UnsupportedOperationError(
                "a watcher may not send a message", {"code": "role_not_permitted", "role": "watcher"}
            ),
            RoleNotPermitted,
            {"role": "watcher", "action": "send a message"},
        ),
        (
            UnsupportedOperationError("x", {"code": "already_answered", "request_id": "1.1.0"}),
            AlreadyAnswered,
            {"request_id": "1.1.0"},
        ),
        (UnsupportedOperationError("x", {"code": "queue_full", "limit": "7"}), QueueFull, {"limit": 7}),
        (
            InvalidParamsError("message.parts: is empty", {"code": "empty_message", "field": "message.parts"}),
            InvalidInput,
            {"kind": "empty_message", "field": "message.parts", "reason": "is empty"},
        ),
        (InvalidParamsError("bad"), InvalidInput, {"kind": "invalid_params", "reason": "bad"}),
        (ContentTypeNotSupportedError("no files", {"field": "parts[0]"}), UnsupportedContent, {"field": "parts[0]"}),
        (
            UnsupportedOperationError("refused: not today", {"code": "refused_by_policy"}),
            RefusedByPolicy,
            {"reason": "not today"},
        ),
        (
            UnsupportedOperationError("x", {"code": "refused_by_policy", "reason": "no: never"}),
            RefusedByPolicy,
            {"reason": "no: never"},
        ),
        (
            UnsupportedOperationError("x", {"code": "unresolved_sub_tasks", "ids": "a, b"}),
            UnresolvedSubTasks,
            {"task_id": "t", "ids": ("a", "b")},
        ),
        (
            UnsupportedOperationError("not ours", {"code": "of_another_server"}),
            ServerRefused,
            {"reason": "not ours", "server_code": "of_another_server"},
        ),
        (InternalError("oops"), ServerRefused, {"reason": "oops"}),
        (A2AClientTimeoutError("timed out"), ConnectionLost, {"reason": "timed out"}),
        (httpx.ConnectError("refused"), ConnectionLost, {"reason": "refused"}),
        (A2AClientError("not JSON-RPC"), ServerRefused, {"reason": "not JSON-RPC"}),
        (NotImplementedError(), ServerRefused, {"reason": "the server does not stream"}),
    ],
)
def test_each_refusal_has_its_error(error: A2AError, kind: type[HarnessError], attributes: dict[str, object]) -> None:
    found = raised(error)
    assert type(found) is kind
    assert {name: getattr(found, name) for name in attributes} == attributes


def test_a_broken_connection_is_lost() -> None:
    for cause in (httpx.ReadTimeout("silence"), httpx.RemoteProtocolError("peer closed")):
        error = A2AClientError("x")
        error.__cause__ = cause
        assert isinstance(raised(error), ConnectionLost)


def test_busy_and_too_fast_say_when_to_come_back() -> None:
    sentence = str(Unavailable("the engine is away"))
    body = {"error": {"code": 503, "status": "UNAVAILABLE", "message": sentence}}
    for status in (503, 429):
        found = raised(by_status(status, body, **{"Retry-After": "7"}))
        assert isinstance(found, Unavailable)
        assert (found.retry_after_s, str(found)) == (7, sentence)


@pytest.mark.parametrize("body", [None, [], "text", {"error": "odd"}, {"error": {"message": 3, "details": 4}}])
def test_any_body_of_a_refusal_can_be_read(body: object) -> None:
    found = raised(by_status(502, body))
    assert isinstance(found, ServerRefused)
    assert (found.status, found.reason) == (502, "the server answered 502 Bad Gateway")
