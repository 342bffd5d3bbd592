"""The servers that the other tests trust refuse what the real ones refuse."""

import copy
from collections.abc import Callable
from typing import Any, Final

import httpx
import pytest

Json = dict[str, Any]
SCHEMA: Final = {"type": "object", "properties": {}}

GOOD: Final[dict[str, Json]] = {
    "/v1/responses": {
        "model": "m",
        "stream": True,
        "instructions": "s",
        "input": [
            {"role": "user", "content": "hi"},
            {"type": "function_call", "call_id": "c", "name": "t", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c", "output": "done"},
        ],
        "tools": [{"type": "function", "name": "t", "parameters": SCHEMA, "strict": False}],
    },
    "/v1/chat/completions": {
        "model": "m",
        "stream": True,
        "messages": [
            {"role": "user", "content": "hi"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "c", "type": "function", "function": {"name": "t", "arguments": "{}"}}],
            },
            {"role": "tool", "tool_call_id": "c", "content": "done"},
        ],
        "tools": [{"type": "function", "function": {"name": "t", "parameters": SCHEMA}}],
    },
    "/v1/messages": {
        "model": "m",
        "stream": True,
        "max_tokens": 9,
        "messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "t", "input": {}}]},
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "c", "content": "done"},
                    {"type": "text", "text": "go on"},
                ],
            },
        ],
        "tools": [{"name": "t", "input_schema": SCHEMA}],
    },
}
MARK: Final = {"cache_control": {"type": "ephemeral"}}
Change = Callable[[Json], object]

BAD: Final[dict[str, tuple[str, Change]]] = {
    "responses, unknown field": ("/v1/responses", lambda body: body.update(reasoning_effort="low")),
    "responses, unknown effort": ("/v1/responses", lambda body: body.update(reasoning={"effort": "hard"})),
    "responses, nothing said": ("/v1/responses", lambda body: body.update(input=[])),
    "responses, result without its call": ("/v1/responses", lambda body: body["input"].pop(1)),
    "responses, call without its result": ("/v1/responses", lambda body: body["input"].pop(2)),
    "responses, result before its call": ("/v1/responses", lambda body: body["input"].reverse()),
    "responses, bad name": ("/v1/responses", lambda body: body["tools"][0].update(name="a/b.c")),
    "responses, no word on strictness": ("/v1/responses", lambda body: body["tools"][0].pop("strict")),
    "responses, strict and open": ("/v1/responses", lambda body: body["tools"][0].update(strict=True)),
    "responses, no properties": ("/v1/responses", lambda body: body["tools"][0].update(parameters={"type": "object"})),
    "responses, one name twice": ("/v1/responses", lambda body: body.update(tools=body["tools"] * 2)),
    "responses, no tools": ("/v1/responses", lambda body: body.update(tools=[])),
    "chat, unknown field": ("/v1/chat/completions", lambda body: body.update(reasoning={"effort": "low"})),
    "chat, result without its call": ("/v1/chat/completions", lambda body: body["messages"].pop(1)),
    "chat, call without its result": ("/v1/chat/completions", lambda body: body["messages"].pop(2)),
    "chat, something between them": (
        "/v1/chat/completions",
        lambda body: body["messages"].insert(2, {"role": "user", "content": "wait"}),
    ),
    "chat, long id": (
        "/v1/chat/completions",
        lambda body: [
            body["messages"][1]["tool_calls"][0].update(id="c" * 41),
            body["messages"][2].update(tool_call_id="c" * 41),
        ],
    ),
    "chat, bad name": ("/v1/chat/completions", lambda body: body["tools"][0]["function"].update(name="a/b.c")),
    "chat, broken arguments": (
        "/v1/chat/completions",
        lambda body: body["messages"][1]["tool_calls"][0]["function"].update(arguments="{"),
    ),
    "messages, unknown field": ("/v1/messages", lambda body: body.update(temperature=1)),
    "messages, unknown effort": ("/v1/messages", lambda body: body.update(output_config={"effort": "minimal"})),
    "messages, no max_tokens": ("/v1/messages", lambda body: body.pop("max_tokens")),
    "messages, result without its call": ("/v1/messages", lambda body: body["messages"].pop(1)),
    "messages, call without its result": ("/v1/messages", lambda body: body["messages"][2]["content"].pop(0)),
    "messages, words before a result": ("/v1/messages", lambda body: body["messages"][2]["content"].reverse()),
    "messages, the model speaks first": ("/v1/messages", lambda body: body["messages"][0].update(role="assistant")),
    "messages, the model speaks last": ("/v1/messages", lambda body: body["messages"].pop(2)),
    "messages, blank words": ("/v1/messages", lambda body: body["messages"][2]["content"][1].update(text=" ")),
    "messages, no content": ("/v1/messages", lambda body: body["messages"][0].update(content=[])),
    "messages, bad name": ("/v1/messages", lambda body: body["tools"][0].update(name="a/b.c")),
    "messages, bad id": (
        "/v1/messages",
        lambda body: [
            body["messages"][1]["content"][0].update(id="c:0"),
            body["messages"][2]["content"][0].update(tool_use_id="c:0"),
        ],
    ),
    "messages, calls but no tools": ("/v1/messages", lambda body: body.pop("tools")),
    "messages, no object": ("/v1/messages", lambda body: body["tools"][0].update(input_schema={})),
    "messages, five marks": (
        "/v1/messages",
        lambda body: body.update(system=[{"type": "text", "text": "s", **MARK}] * 5),
    ),
}


def _url(servers: dict[str, str], path: str) -> str:
    return servers["anthropic" if path == "/v1/messages" else "openai"] + path


@pytest.mark.parametrize("path", GOOD)
async def test_a_good_request_is_answered(servers: dict[str, str], path: str) -> None:
    async with httpx.AsyncClient() as client:
        answer = await client.post(_url(servers, path), json=GOOD[path])
    assert answer.status_code == 200, answer.text
    assert "The tool" in answer.text


@pytest.mark.parametrize("case", BAD)
async def test_a_bad_request_is_refused(servers: dict[str, str], case: str) -> None:
    path, change = BAD[case]
    body = copy.deepcopy(GOOD[path])
    change(body)
    async with httpx.AsyncClient() as client:
        answer = await client.post(_url(servers, path), json=body)
    assert answer.status_code == 400, answer.text


@pytest.mark.parametrize("body", ["", "[]", "{}", "{"])
async def test_what_is_no_request_is_refused(servers: dict[str, str], body: str) -> None:
    async with httpx.AsyncClient() as client:
        for path in GOOD:
            assert (await client.post(_url(servers, path), content=body)).status_code == 400
