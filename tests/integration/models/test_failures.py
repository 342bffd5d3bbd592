"""Everything that a provider does wrong ends as a ModelError with words for people, on each wire format."""

from typing import Any

import pytest

from tests.ports import free_port

KEY = "sk-very-secret"


async def test_a_refusal_is_told_in_its_words_and_is_not_asked_again(wire: Any, url: str, ask: Any) -> None:
    async with wire.model(url) as model:
        failed = await ask.failure(model, "!refuse I would rather not")
    assert (failed.reason, failed.transient) == ("it refused: I would rather not", False)


@pytest.mark.parametrize("status", [408, 409, 429, 500, 503, 529])
async def test_a_passing_refusal_may_be_asked_again(wire: Any, url: str, ask: Any, status: int) -> None:
    async with wire.model(url) as model:
        failed = await ask.failure(model, f"!status {status} try later")
    assert failed.transient
    assert failed.reason == f"status {status}: try later"


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 413, 422])
async def test_a_lasting_refusal_may_not_be_asked_again(wire: Any, url: str, ask: Any, status: int) -> None:
    async with wire.model(url) as model:
        assert not (await ask.failure(model, f"!status {status} never")).transient


async def test_an_empty_purse_may_not_be_asked_again(wire: Any, url: str, ask: Any) -> None:
    async with wire.model(url) as model:
        assert not (await ask.failure(model, "!status 429 you exceeded your quota")).transient


async def test_when_to_come_again_is_told(wire: Any, url: str, ask: Any) -> None:
    async with wire.model(url) as model:
        assert (await ask.failure(model, "!later 7")).retry_after_s == 7
        assert (await ask.failure(model, "!status 503 soon")).retry_after_s is None


async def test_we_do_not_retry_by_ourselves(wire: Any, ask: Any) -> None:
    async with wire.server("--fail-first", "1", "--fail-status", "503") as url, wire.model(url) as model:
        assert (await ask.failure(model, "hi")).transient
        assert (await ask(model, "hi"))[0].text == "You said: hi"


async def test_a_wrong_key_is_not_repeated_in_the_reason(wire: Any, ask: Any) -> None:
    async with wire.server("--require-key", "another") as url, wire.model(url, KEY) as model:
        failed = await ask.failure(model, "hi")
    assert not failed.transient
    assert KEY not in failed.reason
    assert "***" in failed.reason


@pytest.mark.parametrize(
    "text",
    [
        "!garbage broken",
        "!garbage shape",
        "!garbage nested",
        "!garbage html",
        "!half",
        "!cut",
        "!empty",
        '!half-call some_tool {"text": "which is long enough to be cut"}',
    ],
)
async def test_garbage_half_and_empty_answers_may_be_asked_again(wire: Any, url: str, ask: Any, text: str) -> None:
    async with wire.model(url) as model:
        assert (await ask.failure(model, text)).transient
        assert (await ask(model, "hi"))[0].text == "You said: hi"


async def test_a_tool_call_that_its_bound_cut_in_two_is_not_run(wire: Any, url: str, ask: Any) -> None:
    async with wire.model(url) as model:
        failed = await ask.failure(model, '!short-call some_tool {"amount": 100}')
    assert not failed.transient
    assert "tool call" in failed.reason


async def test_an_answer_that_reached_its_bound_before_the_first_word_fails(wire: Any, url: str, ask: Any) -> None:
    async with wire.model(url) as model:
        failed = await ask.failure(model, "!short")
    assert not failed.transient
    assert "before the first word" in failed.reason


@pytest.mark.parametrize(
    ("code", "is_transient"),
    [("server_error", True), ("overloaded_error", True), ("rate_limit_error", True), ("invalid_request_error", False)],
)
async def test_an_error_inside_a_stream_has_its_words(
    wire: Any, url: str, ask: Any, code: str, is_transient: bool
) -> None:
    async with wire.model(url) as model:
        failed = await ask.failure(model, f"!failed {code} out of tea")
    assert (failed.reason, failed.transient) == ("out of tea", is_transient)


async def test_a_long_and_wild_error_is_bounded_and_plain(wire: Any, url: str, ask: Any) -> None:
    async with wire.model(url) as model:
        failed = await ask.failure(model, "!status 500 " + "\x1b[31mred\n" * 1000)
    assert len(failed.reason) <= 300
    assert failed.reason.isprintable()


@pytest.mark.parametrize("text", ["!silent 3600", "!slow 3600"])
async def test_silence_is_bounded(wire: Any, url: str, ask: Any, text: str) -> None:
    async with wire.model(url, timeout=0.3) as model:
        failed = await ask.failure(model, text)
    assert failed.transient
    assert "0.3 s" in failed.reason


async def test_nobody_listening_may_be_asked_again(wire: Any, ask: Any) -> None:
    async with wire.model(f"http://127.0.0.1:{free_port()}") as model:
        failed = await ask.failure(model, "hi")
    assert failed.transient
    assert "127.0.0.1" in failed.reason
