"""Conversations without tools, on each wire format, against real server processes."""

import asyncio
from typing import Any

import httpx
import pytest

from tiny_harness_engine.models import ModelMessage, ModelReply, ModelRequest, ModelUsage, hosted

PATIENCE_S = 30
KEY = "sk-very-secret"


async def test_an_answer_is_streamed_and_counted(wire: Any, url: str, ask: Any) -> None:
    async with wire.model(url, KEY) as model:
        reply, pieces = await ask(model, "good morning ☕")
    assert reply == ModelReply("You said: good morning ☕", usage=ModelUsage(3, 5))
    assert len(pieces) > 1


async def test_a_conversation_is_sent_in_order(wire: Any, url: str) -> None:
    said = (("user", "a"), ("assistant", "b"), ("user", "c"), ("user", "d"))
    talk = [ModelMessage(role, text) for role, text in said]
    async with wire.model(url) as model:
        reply = await model.reply(ModelRequest(2, 1, 1, talk), lambda _: None)
    body = (await wire.last_request(url))["body"]
    assert reply.text == "You said: d"
    heard = [(m["role"], text) for m in body.get("input") or body["messages"] for text in _texts(m["content"])]
    assert heard == list(said)


def _texts(content: Any) -> list[str]:
    return [content] if isinstance(content, str) else [block["text"] for block in content]


async def test_half_a_character_keeps_nobody_from_an_answer(wire: Any, url: str, ask: Any) -> None:
    async with wire.model(url) as model:
        assert (await ask(model, "bad \ud800 news"))[0].text == "You said: bad \ufffd news"


async def test_the_tasks_model_is_asked(wire: Any, url: str) -> None:
    async with wire.model(url) as model:
        await model.reply(ModelRequest(1, 1, 1, [ModelMessage("user", "hi")], model="chosen"), lambda _: None)
    assert (await wire.last_request(url))["body"]["model"] == "chosen"


async def test_without_a_key_no_credentials_are_sent(
    wire: Any, url: str, ask: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.setenv(variable, "not-meant-for-this-server")
    async with wire.model(url) as model:
        await ask(model, "hi")
    assert (await wire.last_request(url))["authorization"] is None


async def test_a_key_is_sent(wire: Any, url: str, ask: Any) -> None:
    async with wire.model(url, KEY) as model:
        await ask(model, "hi")
    assert (await wire.last_request(url))["authorization"] == f"Bearer {KEY}"


async def test_an_answer_that_reached_its_bound_is_taken_as_far_as_it_goes(wire: Any, url: str, ask: Any) -> None:
    async with wire.model(url) as model:
        assert (await ask(model, "!short so far"))[0].text == "so far"


async def test_a_stream_that_stays_open_after_the_answer_is_left(
    wire: Any, url: str, ask: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hosted, "TRAILER_S", 0.1)
    async with wire.model(url) as model:
        assert (await ask(model, "!open 3600"))[0].text == "You said: !open 3600"


async def test_cancellation_closes_the_stream(wire: Any) -> None:
    heard = asyncio.Event()
    async with wire.server() as url, wire.model(url) as model, httpx.AsyncClient(timeout=PATIENCE_S) as client:
        request = ModelRequest(1, 1, 1, [ModelMessage("user", "!slow 3600")])
        asked = asyncio.create_task(model.reply(request, lambda _: heard.set()))
        async with asyncio.timeout(PATIENCE_S):
            await heard.wait()
            asked.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asked
            await client.get(f"{url}/test/disconnect")


async def test_many_questions_at_once_share_one_client(wire: Any, url: str, ask: Any) -> None:
    async with wire.model(url) as model:
        replies = await asyncio.gather(*(ask(model, f"q{number}") for number in range(20)))
    assert [reply.text for reply, _ in replies] == [f"You said: q{number}" for number in range(20)]
