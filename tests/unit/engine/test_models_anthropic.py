"""Anthropic's Messages API: bodies, and how streams are read, as the data that the SDK builds. None is imported."""

from typing import Any

import pytest

from tiny_harness.errors import ModelError
from tiny_harness.settings import AnthropicSettings
from tiny_harness_engine.models import ModelMessage, ModelRequest, ModelUsage, ToolCall, ToolSpec, anthropic_messages
from tiny_harness_engine.models.anthropic_messages import EARLIER, MessagesReading
from tiny_harness_engine.models.wire_names import WireNames

SETTINGS = AnthropicSettings(model="m", max_output_tokens=7)
MARK = {"cache_control": {"type": "ephemeral"}}
CALL = ToolCall("c1", "add", '{"a": 1}')


def _body(*messages: ModelMessage, **more: Any) -> dict[str, Any]:
    request = ModelRequest(1, 1, 1, messages, **more)
    return anthropic_messages.body(SETTINGS, request, WireNames(request))


def _text(text: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": text, **more}


def test_a_body_holds_nothing_that_is_not_set() -> None:
    assert _body(ModelMessage("user", "hi")) == {
        "model": "m",
        "max_tokens": 7,
        "messages": [{"role": "user", "content": [_text("hi", **MARK)]}],
        "stream": True,
    }


def test_effort_goes_where_anthropic_wants_it() -> None:
    assert _body(ModelMessage("user", "hi"), effort="high")["output_config"] == {"effort": "high"}


def test_users_and_the_model_speak_in_turn_and_nobody_says_nothing() -> None:
    talk = [("user", "a"), ("user", " "), ("user", "b"), ("assistant", ""), ("assistant", "c"), ("user", "d")]
    body = _body(*(ModelMessage(role, text) for role, text in talk))  # type: ignore[arg-type]
    assert [(m["role"], [block["text"] for block in m["content"]]) for m in body["messages"]] == [
        ("user", ["a", "b"]),
        ("assistant", ["c"]),
        ("user", ["d"]),
    ]


def test_a_window_that_begins_with_the_models_words_says_that_it_began_earlier() -> None:
    body = _body(ModelMessage("assistant", "so"), ModelMessage("user", "go on"))
    assert body["messages"][0] == {"role": "user", "content": [_text(EARLIER, **MARK)]}


def test_results_stand_before_what_the_user_says() -> None:
    talk = (
        ModelMessage("user", "go"),
        ModelMessage("assistant", "", tool_calls=(CALL,)),
        ModelMessage("tool", "2", call_id="c1"),
        ModelMessage("user", "and?"),
    )
    body = _body(*talk, tools=(ToolSpec("add", "", {}),))
    assert body["messages"][1]["content"] == [{"type": "tool_use", "id": "c1", "name": "add", "input": {"a": 1}}]
    results = [{"type": "tool_result", "tool_use_id": "c1", "content": "2"}, _text("and?", **MARK)]
    assert body["messages"][2]["content"] == results


def test_a_conversation_with_calls_names_their_tools_even_where_none_is_offered() -> None:
    talk = (ModelMessage("assistant", "", tool_calls=(CALL,)), ModelMessage("tool", "2", call_id="c1"))
    body = _body(*talk)
    assert [tool["name"] for tool in body["tools"]] == ["add"]
    assert body["tool_choice"] == {"type": "none"}


def test_never_more_than_four_prefixes_are_marked() -> None:
    talk = [ModelMessage("user" if number % 2 == 0 else "assistant", str(number)) for number in range(9)]
    tools = (ToolSpec("add", "", {}), ToolSpec("sub", "", {}))
    body = _body(*talk, system="be kind", tools=tools)
    assert str(body).count("cache_control") == 4
    marked = [block["text"] for m in body["messages"] for block in m["content"] if "cache_control" in block]
    assert marked == ["6", "8"]
    assert body["tools"][1]["cache_control"] == body["system"][0]["cache_control"] == MARK["cache_control"]


def _started(**usage: int) -> dict[str, Any]:
    return {"type": "message_start", "message": {"usage": usage}}


def _block(index: int, **content: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": content}


def _delta(index: int, **delta: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": delta}


def _ended(reason: str, details: dict[str, Any] | None = None, **usage: int) -> dict[str, Any]:
    delta = {"stop_reason": reason, "stop_details": details}
    return {"type": "message_delta", "delta": delta, "usage": usage}


def _read(*events: Any) -> tuple[MessagesReading, list[str]]:
    reading = MessagesReading()
    return reading, [piece for event in events if (piece := reading.take(event))]


def test_an_answer_is_read_to_its_end() -> None:
    reading, pieces = _read(
        _started(input_tokens=3, cache_read_input_tokens=20, cache_creation_input_tokens=5, output_tokens=1),
        _block(0, type="thinking", thinking=""),
        _delta(0, type="thinking_delta", thinking="hm"),
        _block(1, type="text", text=""),
        _delta(1, type="text_delta", text="he"),
        _delta(1, type="text_delta", text="y"),
        {"type": "content_block_stop", "index": 1},
        _block(2, type="tool_use", id="c1", name="add", input={}),
        _delta(2, type="input_json_delta", partial_json=""),
        _block(3, type="tool_use", id="c2", name="list", input={}),
        _delta(2, type="input_json_delta", partial_json='{"a"'),
        _delta(2, type="input_json_delta", partial_json=": 1}"),
    )
    assert not reading.is_complete
    assert pieces == ["he", "y"]
    reading.take(_ended("tool_use", output_tokens=9))
    assert reading.is_complete
    reply = reading.reply()
    assert (reply.text, reply.usage) == ("hey", ModelUsage(28, 9, 20))
    assert reply.tool_calls == (CALL, ToolCall("c2", "list", ""))


@pytest.mark.parametrize(
    ("details", "words"),
    [
        ({"explanation": "I will not help with that", "category": "cyber"}, "I will not help with that"),
        ({"explanation": None, "category": "cyber"}, "cyber"),
        (None, "I can not"),
    ],
)
def test_a_refusal_is_a_failure_in_the_providers_words(details: dict[str, Any] | None, words: str) -> None:
    reading, _ = _read(_started(), _block(0, type="text", text="I can not"), _ended("refusal", details))
    with pytest.raises(ModelError) as failed:
        reading.reply()
    assert (failed.value.reason, failed.value.transient) == (f"it refused: {words}", False)


@pytest.mark.parametrize("reason", ["max_tokens", "model_context_window_exceeded"])
def test_an_answer_that_was_cut_short_is_taken_as_far_as_it_goes(reason: str) -> None:
    assert _read(_block(0, type="text", text="be"), _ended(reason))[0].reply().text == "be"
    cut_call = (_block(0, type="tool_use", id="c", name="t"), _delta(0, partial_json='{"a'), _ended(reason))
    for events in ((_ended(reason),), cut_call):
        with pytest.raises(ModelError) as failed:
            _read(*events)[0].reply()
        assert not failed.value.transient


@pytest.mark.parametrize(
    "events",
    [
        (),
        (_block(0, type="text", text="hal"),),
        (_ended("end_turn"),),
        (_block(0, type="text", text=" \n"), _ended("end_turn")),
        (_block(0, type="tool_use", id="c"), _ended("tool_use")),
    ],
)
def test_half_wordless_and_nameless_answers_fail_and_another_attempt_may_help(events: tuple[Any, ...]) -> None:
    with pytest.raises(ModelError) as failed:
        _read(*events)[0].reply()
    assert failed.value.transient


@pytest.mark.parametrize(
    "event",
    [
        None,
        [1],
        {},
        {"type": 1},
        {"type": "message_start"},
        _block(0),
        _block(0, type="text", text=5),
        {"type": "content_block_delta", "index": "x", "delta": {}},
        _ended("end_turn") | {"delta": 1},
        _ended("end_turn") | {"usage": {"output_tokens": "many"}},
    ],
)
def test_garbage_in_a_stream_is_noticed(event: Any) -> None:
    with pytest.raises(ValueError, match="validation error"):
        MessagesReading().take(event)
