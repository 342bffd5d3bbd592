"""The openai provider against a real server process that speaks OpenAI's wire formats."""

import asyncio
import socket
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from tiny_harness.errors import ModelError
from tiny_harness.settings import Effort, Settings
from tiny_harness_engine.models import (
    ModelMessage,
    ModelProvider,
    ModelReply,
    ModelRequest,
    ModelUsage,
    open_provider,
    openai_client,
)

PATIENCE_S = 30
KEY = "sk-very-secret"


@asynccontextmanager
async def _server(*flags: str) -> AsyncGenerator[str]:
    """Run the server as a child process; gives its base URL."""
    module = ("-m", "tiny_harness.testing.openai_server", "--port", "0")
    child = await asyncio.create_subprocess_exec(sys.executable, *module, *flags, stdout=asyncio.subprocess.PIPE)
    assert child.stdout is not None
    try:
        async with asyncio.timeout(PATIENCE_S):
            line = (await child.stdout.readline()).decode()
        assert line.startswith("listening on ")
        yield line.removeprefix("listening on ").strip()
    finally:
        child.terminate()
        async with asyncio.timeout(PATIENCE_S):
            await child.communicate()


@pytest.fixture(scope="module")
async def server() -> AsyncGenerator[str]:
    """A server that accepts anybody."""
    async with _server() as url:
        yield url


@pytest.fixture(params=["responses", "chat_completions"])
def api(request: pytest.FixtureRequest) -> str:
    """Each of the two APIs."""
    return request.param


@asynccontextmanager
async def _model(url: str, api: str, key: str = "", **openai: Any) -> AsyncGenerator[ModelProvider]:
    settings = Settings.model_validate({"openai": {"base_url": f"{url}/v1", "api": api, "model": "m", **openai}})
    async with open_provider(settings, {"OPENAI_API_KEY": key}) as model:
        yield model


async def _ask(model: ModelProvider, text: str, effort: Effort | None = None) -> tuple[ModelReply, list[str]]:
    pieces: list[str] = []
    async with asyncio.timeout(PATIENCE_S):
        reply = await model.reply(ModelRequest(1, 1, 1, [ModelMessage("user", text, "m-1")], effort), pieces.append)
    assert "".join(pieces) == reply.text
    return reply, pieces


async def _failure(model: ModelProvider, text: str) -> ModelError:
    with pytest.raises(ModelError) as failed:
        await _ask(model, text)
    return failed.value


async def _last_request(url: str) -> dict[str, Any]:
    async with httpx.AsyncClient() as client:
        return (await client.get(f"{url}/test/requests")).json()[-1]


async def test_an_answer_is_streamed_and_counted(server: str, api: str) -> None:
    async with _model(server, api, KEY) as model:
        reply, pieces = await _ask(model, "good morning ☕")
    assert reply == ModelReply("You said: good morning ☕", usage=ModelUsage(3, 5))
    assert len(pieces) > 1


async def test_a_conversation_is_sent_in_order(server: str, api: str) -> None:
    talk = [
        ModelMessage("user", "a"),
        ModelMessage("assistant", "b"),
        ModelMessage("user", "c"),
        ModelMessage("user", "d"),
    ]
    async with _model(server, api) as model:
        reply = await model.reply(ModelRequest(2, 1, 1, talk), lambda _: None)
    body = (await _last_request(server))["body"]
    assert reply.text == "You said: d"
    assert [(m["role"], m["content"]) for m in body.get("input") or body["messages"]] == [
        (m.role, m.text) for m in talk
    ]


BODIES = {
    "responses": {"model": "m", "stream": True, "input": [{"role": "user", "content": "hi"}]},
    "chat_completions": {
        "model": "m",
        "stream": True,
        "stream_options": {"include_usage": True},
        "messages": [{"role": "user", "content": "hi"}],
    },
}
SET = {
    "responses": {"reasoning": {"effort": "low"}, "max_output_tokens": 50},
    "chat_completions": {"reasoning_effort": "low", "max_completion_tokens": 50},
}


async def test_the_body_holds_nothing_that_is_not_set(server: str, api: str) -> None:
    async with _model(server, api) as model:
        await _ask(model, "hi")
    assert (await _last_request(server))["body"] == BODIES[api]


async def test_the_body_holds_what_is_set(server: str, api: str) -> None:
    async with _model(server, api, max_output_tokens=50) as model:
        await _ask(model, "hi", "low")
    assert (await _last_request(server))["body"] == BODIES[api] | SET[api]


async def test_without_a_key_no_credentials_are_sent(server: str, api: str) -> None:
    async with _model(server, api) as model:
        await _ask(model, "hi")
    assert (await _last_request(server))["authorization"] is None


async def test_a_key_is_sent(server: str, api: str) -> None:
    async with _model(server, api, KEY) as model:
        await _ask(model, "hi")
    assert (await _last_request(server))["authorization"] == f"Bearer {KEY}"


async def test_a_refusal_is_an_answer(server: str, api: str) -> None:
    async with _model(server, api) as model:
        assert (await _ask(model, "!refuse I would rather not"))[0].text == "I would rather not"


@pytest.mark.parametrize("status", [408, 409, 429, 500, 503])
async def test_a_passing_refusal_may_be_asked_again(server: str, api: str, status: int) -> None:
    async with _model(server, api) as model:
        failed = await _failure(model, f"!status {status} try later")
    assert failed.transient
    assert failed.reason == f"status {status}: try later"


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
async def test_a_lasting_refusal_may_not_be_asked_again(server: str, api: str, status: int) -> None:
    async with _model(server, api) as model:
        assert not (await _failure(model, f"!status {status} never")).transient


async def test_an_empty_purse_may_not_be_asked_again(server: str, api: str) -> None:
    async with _model(server, api) as model:
        assert not (await _failure(model, "!status 429 you exceeded your quota")).transient


async def test_we_do_not_retry_by_ourselves(api: str) -> None:
    async with _server("--fail-first", "1", "--fail-status", "503") as url, _model(url, api) as model:
        assert (await _failure(model, "hi")).transient
        assert (await _ask(model, "hi"))[0].text == "You said: hi"


async def test_a_wrong_key_is_not_repeated_in_the_reason(api: str) -> None:
    async with _server("--require-key", "another") as url, _model(url, api, KEY) as model:
        failed = await _failure(model, "hi")
    assert not failed.transient
    assert KEY not in failed.reason
    assert "***" in failed.reason


@pytest.mark.parametrize("text", ["!garbage broken", "!garbage shape", "!garbage html", "!half", "!cut", "!empty"])
async def test_garbage_half_and_empty_answers_may_be_asked_again(server: str, api: str, text: str) -> None:
    async with _model(server, api) as model:
        assert (await _failure(model, text)).transient
        assert (await _ask(model, "hi"))[0].text == "You said: hi"


@pytest.mark.parametrize(("code", "is_transient"), [("server_error", True), ("invalid_prompt", False)])
async def test_an_error_inside_a_stream_has_its_words(server: str, api: str, code: str, is_transient: bool) -> None:
    async with _model(server, api) as model:
        failed = await _failure(model, f"!failed {code} out of tea")
    assert (failed.reason, failed.transient) == ("out of tea", is_transient)


async def test_a_long_and_wild_error_is_bounded_and_plain(server: str, api: str) -> None:
    async with _model(server, api) as model:
        failed = await _failure(model, "!status 500 " + "\x1b[31mred\n" * 1000)
    assert len(failed.reason) <= 300
    assert failed.reason.isprintable()


@pytest.mark.parametrize("text", ["!silent 3600", "!slow 3600"])
async def test_silence_is_bounded(server: str, api: str, text: str) -> None:
    async with _model(server, api, timeout=0.3) as model:
        failed = await _failure(model, text)
    assert failed.transient
    assert "0.3 s" in failed.reason


async def test_a_stream_that_stays_open_after_the_answer_is_left(
    server: str, api: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openai_client, "TRAILER_S", 0.1)
    async with _model(server, api) as model:
        assert (await _ask(model, "!open 3600"))[0].text == "You said: !open 3600"


async def test_nobody_listening_may_be_asked_again(api: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    async with _model(f"http://127.0.0.1:{port}", api) as model:
        failed = await _failure(model, "hi")
    assert failed.transient
    assert "127.0.0.1" in failed.reason


async def test_cancellation_closes_the_stream(api: str) -> None:
    heard = asyncio.Event()
    async with _server() as url, _model(url, api) as model, httpx.AsyncClient(timeout=PATIENCE_S) as client:
        request = ModelRequest(1, 1, 1, [ModelMessage("user", "!slow 3600")])
        asked = asyncio.create_task(model.reply(request, lambda _: heard.set()))
        async with asyncio.timeout(PATIENCE_S):
            await heard.wait()
            asked.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asked
            await client.get(f"{url}/test/disconnect")


async def test_many_questions_at_once_share_one_client(server: str, api: str) -> None:
    async with _model(server, api) as model:
        replies = await asyncio.gather(*(_ask(model, f"q{number}") for number in range(20)))
    assert [reply.text for reply, _ in replies] == [f"You said: q{number}" for number in range(20)]


@pytest.mark.parametrize("body", ["", "[]", "{}", '{"model": "m", "input": [], "stream": true}'])
async def test_the_server_refuses_what_it_does_not_know(server: str, body: str) -> None:
    async with httpx.AsyncClient() as client:
        for path in ("responses", "chat/completions"):
            assert (await client.post(f"{server}/v1/{path}", content=body)).status_code == 400
        unknown = BODIES["responses"] | {"reasoning_effort": "low"}
        assert (await client.post(f"{server}/v1/responses", json=unknown)).status_code == 400
