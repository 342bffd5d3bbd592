"""What providers' words of failure mean."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from tiny_harness_engine.models.failure import MAX_WAIT_S, NO_REASON, Failure, read_failure


@pytest.mark.parametrize(
    ("body", "word", "message"),
    [
        ({"message": "m", "type": "t", "code": "c"}, "c", "m"),
        ({"type": "error", "error": {"type": "overloaded_error", "message": "m"}}, "overloaded_error", "m"),
        ({"error": {"message": "m", "type": "t", "code": None}}, "t", "m"),
        ({"error": {"code": 503, "message": "m"}}, "503", "m"),
        ({"error": "words"}, "", None),
        ({"message": ["no", "text"]}, "", None),
        ("<html>", "", None),
        (None, "", None),
        ([], "", None),
    ],
)
def test_an_error_is_found_wherever_it_stands(body: Any, word: str, message: str | None) -> None:
    failure = read_failure(body)
    assert (failure.word, failure.message) == (word, message)


@pytest.mark.parametrize(
    ("status", "word", "is_transient"),
    [
        (400, "invalid_request_error", False),
        (401, "authentication_error", False),
        (402, "billing_error", False),
        (408, "", True),
        (409, "", True),
        (413, "request_too_large", False),
        (429, "rate_limit_error", True),
        (429, "insufficient_quota", False),
        (500, "api_error", True),
        (503, "", True),
        (529, "overloaded_error", True),
    ],
)
def test_a_status_tells_whether_another_attempt_can_help(status: int, word: str, is_transient: bool) -> None:
    error = Failure(type=word, message="words").of_status(status, {}, "other words")
    assert (error.reason, error.transient) == (f"status {status}: words", is_transient)


def test_a_status_without_words_is_told_in_the_librarys() -> None:
    assert Failure().of_status(502, {}, "Error code: 502").reason == "status 502: Error code: 502"


@pytest.mark.parametrize(
    ("word", "is_transient"),
    [("", True), ("overloaded_error", True), ("api_error", True), ("invalid_request_error", False), ("odd", False)],
)
def test_an_error_inside_a_stream_has_a_word_too(word: str, is_transient: bool) -> None:
    error = Failure(code=word).in_stream()
    assert (error.reason, error.transient) == (word or NO_REASON, is_transient)


@pytest.mark.parametrize(
    ("headers", "wait_s"),
    [
        ({"Retry-After": "7"}, 7),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "-3"}, 0),
        ({"retry-after": "99999999"}, MAX_WAIT_S),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "soon"}, None),
        ({}, None),
    ],
)
def test_when_to_come_again_is_read(headers: dict[str, str], wait_s: float | None) -> None:
    assert Failure().of_status(429, headers, "").retry_after_s == wait_s


def test_a_date_to_come_again_is_read() -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(minutes=30), usegmt=True)
    wait_s = Failure().of_status(503, {"retry-after": date}, "").retry_after_s
    assert wait_s is not None
    assert 1000 < wait_s <= 1800


def test_what_lasts_is_not_waited_for() -> None:
    assert Failure().of_status(400, {"retry-after": "7"}, "").retry_after_s is None
