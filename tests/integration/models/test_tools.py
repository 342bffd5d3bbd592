"""Conversations with tools, effort and streaming, on each wire format, against servers as strict as the real ones."""

import json
from collections.abc import Sequence
from typing import Any

from tiny_harness_engine.models import (
    ModelMessage,
    ModelProvider,
    ModelReply,
    ModelRequest,
    ToolCall,
    ToolSpec,
)

SYSTEM = "You are the clerk of a shop."
LOOKUP = ToolSpec(
    "orders/main.lookup",
    "Finds an order.",
    {"type": "object", "properties": {"order": {"type": "string"}}, "required": ["order"]},
)
PLAN = ToolSpec("create_plan", "", {"type": "object"})
ODD = ToolSpec("policy/rules.näme." + "x" * 80, "Odd.", {"anyOf": [{"required": ["a"]}], "$schema": "x"})
TOOLS = (LOOKUP, PLAN, ODD)


def _user(text: str) -> ModelMessage:
    return ModelMessage("user", text, "m-1")


def _said(reply: ModelReply) -> ModelMessage:
    return ModelMessage("assistant", reply.text, tool_calls=tuple(reply.tool_calls))


async def _ask(model: ModelProvider, talk: Sequence[ModelMessage], **more: Any) -> tuple[ModelReply, list[str]]:
    pieces: list[str] = []
    told = {"system": SYSTEM, "tools": TOOLS, **more}
    reply = await model.reply(ModelRequest(1, 1, 1, talk, **told), pieces.append)
    assert "".join(pieces) == reply.text
    return reply, pieces


async def test_a_conversation_with_tools_effort_and_streaming(wire: Any, url: str) -> None:
    wanted = [
        {"name": "orders_main_lookup", "arguments": {"order": "A-17, the one with the red ribbon"}},
        {"name": "create_plan", "arguments": {}},
    ]
    talk = [_user(f"!calls {json.dumps(wanted)}")]
    async with wire.model(url) as model:
        reply, pieces = await _ask(model, talk, effort="high")
        assert reply.text == "One moment."
        assert len(pieces) > 1
        calls = [(call.name, json.loads(call.arguments)) for call in reply.tool_calls]
        assert calls == [("orders/main.lookup", wanted[0]["arguments"]), ("create_plan", {})]

        found, refused = (call.call_id for call in reply.tool_calls)
        results = [
            ModelMessage("tool", "no plans today", call_id=refused, is_error=True),
            ModelMessage("tool", "A-17: 3 socks", call_id=found),
        ]
        talk += [_said(reply), *results]
        reply, _ = await _ask(model, talk, effort="low")
        assert "A-17: 3 socks" in reply.text
        assert "failed" in reply.text

        talk += [_said(reply), _user("thanks")]
        reply, _ = await _ask(model, talk)
        assert reply.text == "You said: thanks"


async def test_a_call_without_arguments_has_an_empty_object(wire: Any, url: str) -> None:
    async with wire.model(url) as model:
        reply, _ = await _ask(model, [_user("!call create_plan {}")])
    assert [(call.name, call.arguments) for call in reply.tool_calls] == [("create_plan", "{}")]


async def test_a_tool_that_was_never_offered_is_told_as_the_model_said_it(wire: Any, url: str) -> None:
    async with wire.model(url) as model:
        reply, _ = await _ask(model, [_user('!call made_up {"a": 1}')])
    assert [call.name for call in reply.tool_calls] == ["made_up"]


async def test_a_tool_with_a_name_that_no_provider_takes_is_called_by_its_own(wire: Any, url: str) -> None:
    async with wire.model(url) as model:
        await _ask(model, [_user("hi")])
        body = (await wire.last_request(url))["body"]
        name = json.dumps(body["tools"][2]).partition('"name": "')[2].partition('"')[0]
        reply, _ = await _ask(model, [_user(f"!call {name} {{}}")])
    assert [call.name for call in reply.tool_calls] == [ODD.name]


async def test_whatever_was_cut_out_of_the_window_the_provider_takes_it(wire: Any, url: str) -> None:
    call = ToolCall("functions.lookup:0 of another server", "orders/main.lookup", '{"order": ')
    gone = ToolCall("call_2", "tool/of.yesterday", "[1]")
    talk = [
        ModelMessage("tool", "its call was cut out", call_id="call_0"),
        ModelMessage("assistant", "I looked."),
        _user("go on"),
        ModelMessage("assistant", "", tool_calls=(call, gone)),
        ModelMessage("tool", "found", call_id=call.call_id),
        ModelMessage("tool", "found twice", call_id=call.call_id),
        _user("stop, I say"),
    ]
    async with wire.model(url) as model:
        for tools in (TOOLS, ()):
            reply, _ = await _ask(model, talk, tools=tools)
            assert "found" in reply.text
            assert "There is no result" in reply.text


async def test_words_that_are_blank_are_taken(wire: Any, url: str) -> None:
    call = ToolCall("call_1", "create_plan", "{}")
    talk = [
        _user("go"),
        ModelMessage("assistant", " \n", tool_calls=(call,)),
        ModelMessage("tool", "", call_id="call_1"),
        _user(" "),
        _user("on"),
    ]
    async with wire.model(url) as model:
        reply, _ = await _ask(model, talk, system=" ")
    assert reply.text.startswith("The tools said:")


async def test_what_was_sent_before_costs_less(wire: Any, url: str) -> None:
    system = "word " * 2000
    call = ToolCall("call_1", "create_plan", '{"steps": "one two three"}')
    talk = [_user(f"begin {wire.path}"), ModelMessage("assistant", "", tool_calls=(call,))]
    talk.append(ModelMessage("tool", "planned " * 100, call_id="call_1"))
    async with wire.model(url) as model:
        first, _ = await _ask(model, talk[:1], system=system)
        second, _ = await _ask(model, talk, system=system)
        third, _ = await _ask(model, [*talk, _said(second), _user("more")], system=system)
    assert first.usage.cached_tokens == 0
    assert second.usage.cached_tokens == first.usage.input_tokens > 2000
    assert third.usage.cached_tokens == second.usage.input_tokens > first.usage.input_tokens + 100
