"""The scripted model answers as its script says."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tiny_harness.errors import ModelError
from tiny_harness_engine.models import ModelMessage, ModelReply, ModelRequest, ModelUsage, ToolCall, ToolSpec
from tiny_harness_engine.models.script import DEMO, Script, read_script
from tiny_harness_engine.models.scripted import ScriptedModel


def _model(*rules: dict[str, Any], **more: Any) -> ScriptedModel:
    return ScriptedModel(Script.model_validate({"rules": rules, **more}), "test.toml", "scripted")


def _request(*texts: str, turn: int = 1, step: int = 1, attempt: int = 1) -> ModelRequest:
    """Ask with a conversation whose messages come from the user and the assistant in turn."""
    roles = ("user", "assistant") * len(texts)
    messages = [ModelMessage(role, text, f"m-{n}") for n, (role, text) in enumerate(zip(roles, texts, strict=False))]
    return ModelRequest(turn, step, attempt, messages)


def _ignore(piece: str) -> None:
    del piece


async def _answer(model: ScriptedModel, request: ModelRequest, on_text: Callable[[str], None] = _ignore) -> ModelReply:
    async with asyncio.timeout(10):
        return await model.reply(request, on_text)


async def _text(model: ScriptedModel, *texts: str, **numbers: int) -> str:
    return (await _answer(model, _request(*texts, **numbers))).text


async def test_the_first_rule_that_fits_answers() -> None:
    model = _model(
        {"when": {"text": "(?i)cat"}, "reply": "meow"}, {"when": {"text": "c"}, "reply": "c"}, {"reply": "-"}
    )
    assert [await _text(model, text) for text in ("a CAT", "cow", "dog")] == ["meow", "c", "-"]


@pytest.mark.parametrize(
    ("when", "fitting"),
    [
        ({"message_id": "m-0"}, _request("x")),
        ({"turn": 2}, _request("x", turn=2)),
        ({"step": 2}, _request("x", step=2)),
        ({"attempt": 2}, _request("x", attempt=2)),
    ],
)
async def test_a_rule_fits_by_id_and_numbers(when: dict[str, Any], fitting: ModelRequest) -> None:
    model = _model({"when": when, "reply": "fits"}, {"reply": "other"})
    other = _request("a", "b", "c", turn=3, step=3, attempt=3)
    assert [(await _answer(model, asked)).text for asked in (fitting, other)] == ["fits", "other"]


async def test_only_the_last_user_message_is_matched() -> None:
    model = _model({"when": {"text": "cat"}, "reply": "meow"}, {"reply": "-"})
    assert await _text(model, "cat", "cat", "dog") == "-"


async def test_a_template_names_the_request_and_groups_and_leaves_other_braces() -> None:
    template = "{text}|{message_id}|{turn}|{attempt}|{messages}|{verb}|{2}|{none}|{}|{ text }"
    model = _model({"when": {"text": r"(?P<verb>\w+) the (\w+)( now)?"}, "reply": template})
    asked = _request("hi", "ho", "feed the cat", turn=2, attempt=3)
    assert (await _answer(model, asked)).text == "feed the cat|m-2|2|3|3|feed|cat|{none}|{}|{ text }"


async def test_what_a_user_says_is_no_template() -> None:
    assert await _text(_model({"reply": "{text}"}), "{turn}") == "{turn}"


async def test_a_rule_remembers_the_newest_earlier_words_of_the_user() -> None:
    remember = r"my name is (?P<name>\w+)"
    model = _model({"when": {"text": "name"}, "remember": remember, "reply": "{name}"}, {"reply": "who?"})
    assert await _text(model, "what is my name") == "who?"
    assert await _text(model, "my name is Ada", "hi", "name?") == "Ada"
    assert await _text(model, "my name is Ada", "my name is Bot", "my name is Eve", "-", "name?") == "Eve"
    assert await _text(model, "my name is Ada") == "who?"


async def test_the_pieces_make_up_the_text() -> None:
    pieces: list[str] = []
    model = _model({"reply": "one two"}, stream={"chunk_chars": 3})
    reply = await _answer(model, _request("x y"), pieces.append)
    assert pieces == ["one", " tw", "o"]
    assert reply == ModelReply("one two", usage=ModelUsage(2, 2))


async def test_a_rules_own_streaming_wins() -> None:
    pieces: list[str] = []
    model = _model({"reply": "abc", "stream": {"chunk_chars": 2, "chunk_delay_s": 0.001}}, stream={"chunk_chars": 1})
    await _answer(model, _request("x"), pieces.append)
    assert pieces == ["ab", "c"]


async def test_tool_calls_have_stable_ids_and_may_be_broken() -> None:
    calls = [{"name": "add", "arguments": {"a": [1, "x"]}}, {"name": "bad", "arguments": "{"}]
    model = _model({"tool_calls": calls})
    first, second = [await _answer(model, _request("x", turn=4, step=2)) for _ in range(2)]
    assert first == second
    assert [(call.call_id, call.name) for call in first.tool_calls] == [("call-4-2-1", "add"), ("call-4-2-2", "bad")]
    assert json.loads(first.tool_calls[0].arguments) == {"a": [1, "x"]}
    assert first.tool_calls[1].arguments == "{"


def _results(*results: tuple[str, str, bool]) -> list[ModelMessage]:
    """Say how a conversation stands after these tools answered: (name, text, is_error)."""
    calls = [ToolCall(f"c{number}", name, "{}") for number, (name, _, _) in enumerate(results)]
    told = [
        ModelMessage("tool", text, call_id=f"c{number}", is_error=is_error)
        for number, (_, text, is_error) in enumerate(results)
    ]
    return [ModelMessage("user", "hi", "m-0"), ModelMessage("assistant", "", tool_calls=tuple(calls)), *told]


@pytest.mark.parametrize(
    ("result", "fits"),
    [
        ({}, True),
        ({"name": "o/o.find"}, True),
        ({"name": "o/o.find", "text": "sent"}, False),
        ({"text": r"sent (?P<day>\w+)"}, True),
        ({"name": "p/p.rule", "is_error": True}, True),
        ({"name": "o/o.find", "is_error": True}, False),
        ({"name": "none"}, False),
    ],
)
async def test_a_rule_fits_by_the_results_of_tools(result: dict[str, Any], fits: bool) -> None:
    model = _model({"when": {"result": result}, "reply": "fits"}, {"reply": "other"})
    messages = _results(("o/o.find", "paid", False), ("p/p.rule", "sent today", True))
    assert (await _answer(model, ModelRequest(1, 2, 1, messages))).text == ("fits" if fits else "other")


async def test_results_are_old_when_the_model_has_spoken_since() -> None:
    model = _model({"when": {"result": {}}, "reply": "fits"}, {"reply": "other"})
    old = [*_results(("t", "x", False)), ModelMessage("assistant", "done"), ModelMessage("user", "and?")]
    assert (await _answer(model, ModelRequest(2, 1, 1, old))).text == "other"
    queued = [*_results(("t", "x", False)), ModelMessage("user", "and?")]
    assert (await _answer(model, ModelRequest(1, 2, 1, queued))).text == "fits"


async def test_templates_name_the_result_and_fill_the_arguments() -> None:
    call = {"name": "pay", "arguments": {"note": "{1} of {result}", "lines": ["{text}", 3, {"to": "{model}"}]}}
    model = _model({"when": {"result": {"text": r"total (\d+)"}}, "reply": "{result}, {step}", "tool_calls": [call]})
    reply = await _answer(model, ModelRequest(1, 2, 1, _results(("find", "total 12", False))))
    assert reply.text == "total 12, 2"
    assert json.loads(reply.tool_calls[0].arguments) == {
        "note": "12 of total 12",
        "lines": ["hi", 3, {"to": "scripted"}],
    }


async def test_arguments_may_be_a_template_of_the_whole() -> None:
    model = _model({"when": {"text": r"pay (\d+)"}, "tool_calls": [{"name": "pay", "arguments": '{"amount": {1}}'}]})
    reply = await _answer(model, _request("pay 12"))
    assert json.loads(reply.tool_calls[0].arguments) == {"amount": 12}


async def test_a_rule_fits_by_the_model_that_is_asked() -> None:
    model = _model({"when": {"model": "big"}, "reply": "big"}, {"when": {"model": "scripted"}, "reply": "mine"})
    asked = _request("x")
    assert [(await _answer(model, replace(asked, model=name))).text for name in ("big", None)] == ["big", "mine"]


async def test_a_rule_fits_by_the_system_text_and_the_tools_that_are_offered() -> None:
    model = _model(
        {"when": {"system": r"skill (?P<skill>\w+)"}, "reply": "{skill}"},
        {"when": {"offers": "pay"}, "reply": "pay"},
        {"reply": "-"},
    )
    asked = _request("x")
    tools = (ToolSpec("pay", "", {}),)
    requests = (replace(asked, system="the skill refunds"), replace(asked, tools=tools), asked)
    assert [(await _answer(model, request)).text for request in requests] == ["refunds", "pay", "-"]


async def test_a_rule_may_say_what_it_cost() -> None:
    model = _model({"reply": "x", "usage": {"input_tokens": 200_000, "cached_tokens": 9}})
    assert (await _answer(model, _request("x"))).usage == ModelUsage(200_000, 0, 9)


async def test_a_script_drives_a_story_to_its_end() -> None:
    model = _model(
        {"when": {"result": {"name": "pay"}}, "reply": "Paid {result}."},
        {
            "when": {"result": {"name": "find", "text": r"total (?P<total>\d+)"}},
            "reply": "I pay.",
            "tool_calls": [{"name": "pay", "arguments": {"amount": "{total}"}}],
        },
        {"when": {"step": 1}, "tool_calls": [{"name": "find"}, {"name": "rules"}]},
    )
    answers = {"find": "total 12", "rules": "be kind", "pay": "12"}
    messages = [ModelMessage("user", "refund me", "m-0")]
    for step in range(1, 4):
        reply = await _answer(model, ModelRequest(1, step, 1, messages))
        messages.append(ModelMessage("assistant", reply.text, tool_calls=tuple(reply.tool_calls)))
        messages += [ModelMessage("tool", answers[call.name], call_id=call.call_id) for call in reply.tool_calls]
    assert [message.text for message in messages if message.role == "assistant"] == ["", "I pay.", "Paid 12."]


@pytest.mark.parametrize("transient", [True, False])
async def test_a_failure_is_as_the_script_says(transient: bool) -> None:
    with pytest.raises(ModelError) as failed:
        await _text(_model({"fail": {"reason": "busy", "transient": transient}}), "x", attempt=9)
    assert (failed.value.reason, failed.value.transient) == ("busy", transient)


async def test_a_failure_may_last_some_attempts_only() -> None:
    model = _model({"reply": "ok", "fail": {"reason": "busy", "times": 2}})
    for attempt in (1, 2):
        with pytest.raises(ModelError):
            await _text(model, "x", attempt=attempt)
    assert await _text(model, "x", attempt=3) == "ok"


async def test_garbage_comes_after_the_text_and_another_attempt_may_help() -> None:
    pieces: list[str] = []
    with pytest.raises(ModelError) as failed:
        await _answer(_model({"reply": "abc", "garbage": True}), _request("x"), pieces.append)
    assert failed.value.transient
    assert pieces == ["abc"]


async def test_no_rule_is_a_lasting_failure_that_names_the_script() -> None:
    with pytest.raises(ModelError) as failed:
        await _text(_model({"when": {"turn": 2}, "reply": "x"}), "x")
    assert "test.toml" in failed.value.reason
    assert not failed.value.transient


async def test_a_hang_and_a_delay_end_when_they_are_cancelled() -> None:
    for rule in ({"hang": True}, {"reply": "x", "delay_s": 3600}):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await _model(rule).reply(_request("x"), _ignore)


@pytest.fixture(scope="module")
def demo() -> ScriptedModel:
    """The demo's script, without its delays."""
    script = read_script(DEMO)
    quick = script.stream.model_copy(update={"chunk_delay_s": 0.0})
    rules = tuple(rule.model_copy(update={"stream": None}) for rule in script.rules)
    return ScriptedModel(script.model_copy(update={"stream": quick, "rules": rules}), DEMO.name, "scripted")


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (["Hello"], "scripted model"),
        (["Hi, my name is Ada."], "**Ada**"),
        (["My name is Ada", "Nice!", "What is my name?"], "**Ada**"),
        (["Call me O'Neil", "-", "what's my name"], "**O'Neil**"),
        (["what is my name?"], "not told me"),
        (["Remember that the key is under the mat."], "*the key is under the mat*"),
        (["please remember the milk!", "-", "What did I ask you to remember?"], "> the milk"),
        (["What can you do?"], "Try:"),
        (["Show me some Markdown"], "| gateway |"),
        (["Tell me a long story"], "waiting still"),
        (["what if I kill you?"], "one"),
        (["Thank you"], "welcome"),
        (["Goodbye"], "stays open"),
        (["Wie geht's?"], "OPENAI_API_KEY"),
    ],
)
async def test_the_demo_holds_a_conversation(demo: ScriptedModel, said: list[str], expected: str) -> None:
    text = await _text(demo, *said)
    assert expected in text
    assert text == text.strip()


async def test_the_demo_fails_once_when_asked(demo: ScriptedModel) -> None:
    asked = _request("Fail once")
    with pytest.raises(ModelError) as failed:
        await _answer(demo, asked)
    assert failed.value.transient
    assert "attempt 2" in (await _answer(demo, replace(asked, attempt=2))).text
