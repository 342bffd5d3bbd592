"""What the gateway reads from a request."""

from datetime import UTC, datetime

import pytest
from a2a.types import GetTaskRequest, ListTasksRequest, SendMessageRequest
from starlette.requests import Request

from tiny_harness.errors import InvalidInput
from tiny_harness_gateway import requests


def with_cursor(value: str) -> Request:
    return Request({"type": "http", "headers": [(b"last-event-id", value.encode("latin-1"))]})


@pytest.mark.parametrize(("given", "read"), [("0", 0), ("17", 17), ("999999999", 999_999_999)])
def test_a_cursor_is_a_number(given: str, read: int) -> None:
    assert requests.read_cursor(with_cursor(given)) == read


@pytest.mark.parametrize("given", ["", " ", "²", "+1", "1_0", "0x1", "1 2", "9" * 10])
def test_another_cursor_is_malformed(given: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        requests.read_cursor(with_cursor(given))
    assert refused.value.kind == "invalid_cursor"


def test_without_a_cursor_there_is_none() -> None:
    assert requests.read_cursor(Request({"type": "http", "headers": []})) is None


def test_a_page_token_names_a_place_and_comes_back() -> None:
    at = datetime(2026, 3, 1, 12, 30, 15, 123_000, UTC)
    query = requests.task_query(ListTasksRequest(page_token=requests.page_token(at, "t-1")), "ann")
    assert (query.after, query.participant_id, query.limit) == ((at, "t-1"), "ann", 50)


@pytest.mark.parametrize("token", ["x", "é", "MTIz", "IHQ=", "LTEgdA==", "OTk5OTk5OTk5OTk5OTk5OSB0", "\ud83d"])
def test_another_page_token_is_refused(token: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        requests._read_page_token(token)  # pyright: ignore[reportPrivateUsage]
    assert (refused.value.kind, refused.value.field) == ("invalid_params", "pageToken")


def test_malformed_parameters_are_told_by_their_path_alone() -> None:
    with pytest.raises(InvalidInput) as refused:
        requests.parse({"message": {"taskId": 5}}, SendMessageRequest())
    assert (refused.value.field, refused.value.reason) == ("message.taskId", "is malformed")


def test_unknown_parameters_are_ignored() -> None:
    assert requests.parse({"id": "t", "new": 1}, GetTaskRequest()).id == "t"


def test_a_message_without_a_role_is_the_users() -> None:
    parsed = requests.parse({"message": {"messageId": "m", "role": "ROLE_OF_THE_FUTURE"}}, SendMessageRequest())
    assert requests.message_json(parsed) == {"messageId": "m", "role": "ROLE_USER"}


def test_numbers_that_come_as_doubles_are_read_as_numbers() -> None:
    assert requests.parse({"id": "t", "historyLength": 3.0}, GetTaskRequest()).history_length == 3


@pytest.mark.parametrize("value", ["TASK_STATE_ASLEEP", "working", 99, -1, ["TASK_STATE_WORKING"], {}])
def test_a_state_that_a2a_does_not_have_is_refused(value: object) -> None:
    with pytest.raises(InvalidInput):
        requests.check_status_filter(value)


def nested(depth: int, opening: str, closing: str) -> bytes:
    return (opening * depth + "1" + closing * depth).encode()


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}"), ('[{"a":', "}]")])
def test_a_body_is_nested_as_deep_as_the_limit_and_no_deeper(opening: str, closing: str) -> None:
    deepest = requests.MAX_NESTING // len(closing)
    assert requests.read_json(nested(deepest, opening, closing))
    for depth in (deepest + 1, 400, 100_000):
        with pytest.raises(InvalidInput) as refused:
            requests.read_json(nested(depth, opening, closing))
        assert refused.value.reason == "is nested too deeply"


def test_a_body_with_many_brackets_side_by_side_is_read() -> None:
    assert len(requests.read_json(b"[" + b"[],{}," * 1_000 + b"[]]")) == 2_001
