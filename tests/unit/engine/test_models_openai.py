"""OpenAI's two APIs: bodies, and how streams are read. No SDK is imported: events are what it builds, as plain data."""

from typing import Any

import pytest

from tiny_harness.errors import ModelError
from tiny_harness.settings import OpenAISettings
from tiny_harness_engine.models import ModelMessage, ModelRequest, ModelUsage, ToolCall, openai_chat, openai_responses
from tiny_harness_engine.models.openai_chat import ChatReading
from tiny_harness_engine.models.openai_responses import ResponsesReading
from tiny_harness_engine.models.reading import Reading
from tiny_harness_engine.models.wire_names import WireNames

TALK = (ModelMessage("user", "hi", "1"), ModelMessage("assistant", "ho", "2"), ModelMessage("user", "hu", "3"))
WORDS = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}, {"role": "user", "content": "hu"}]
PLAIN = ModelRequest(1, 1, 1, TALK)
HARD = ModelRequest(1, 1, 1, TALK, effort="high")
NAMES = WireNames(PLAIN)
SETTINGS = OpenAISettings(model="m")
BOUNDED = OpenAISettings(model="m", max_output_tokens=7)


def _read(reading: Reading, *events: Any) -> list[str]:
    return [piece for event in events if (piece := reading.take(event))]


def test_bodies_hold_nothing_that_is_not_set() -> None:
    assert openai_responses.body(SETTINGS, PLAIN, NAMES) == {"model": "m", "input": WORDS, "stream": True}
    options = {"include_usage": True}
    assert openai_chat.body(SETTINGS, PLAIN, NAMES) == {
        "model": "m",
        "messages": WORDS,
        "stream": True,
        "stream_options": options,
    }


def test_effort_and_bound_are_sent_when_set() -> None:
    responses, chat = openai_responses.body(BOUNDED, HARD, NAMES), openai_chat.body(BOUNDED, HARD, NAMES)
    assert (responses["reasoning"], responses["max_output_tokens"]) == ({"effort": "high"}, 7)
    assert (chat["reasoning_effort"], chat["max_completion_tokens"]) == ("high", 7)


def _delta(text: str, kind: str = "output_text") -> dict[str, Any]:
    return {"type": f"response.{kind}.delta", "delta": text, "item_id": "i"}


def _ended(word: str = "completed", **response: Any) -> dict[str, Any]:
    return {"type": f"response.{word}", "response": response}


def test_responses_are_read_to_their_end() -> None:
    reading = ResponsesReading()
    item = {"type": "function_call", "call_id": "c", "name": "add", "arguments": "{}"}
    done = {"type": "response.output_item.done", "item": item}
    created = {"type": "response.created", "response": {}}
    assert _read(reading, created, _delta("he"), _delta("y"), done) == ["he", "y"]
    assert not reading.is_complete
    _read(reading, _ended(usage={"input_tokens": 3, "output_tokens": 2, "input_tokens_details": {"cached_tokens": 1}}))
    reply = reading.reply()
    assert (reply.text, reply.usage, reply.tool_calls) == ("hey", ModelUsage(3, 2, 1), (ToolCall("c", "add", "{}"),))


def test_a_response_without_deltas_has_its_text_at_the_end() -> None:
    reading = ResponsesReading()
    output = [{"type": "reasoning"}, {"type": "message", "content": [{"type": "output_text", "text": "all"}]}]
    output.append({"type": "function_call", "call_id": "c", "name": "add", "arguments": "{}"})
    assert _read(reading, _ended(output=output)) == ["all"]
    assert reading.reply().text == "all"
    assert reading.reply().tool_calls == (ToolCall("c", "add", "{}"),)


def test_refusals_are_failures_in_the_models_words_and_no_text() -> None:
    early, late, chat = ResponsesReading(), ResponsesReading(), ChatReading()
    content = [{"type": "refusal", "refusal": "no, no"}]
    told = _read(early, _delta("no, ", "refusal"), _delta("no", "refusal"), _ended())
    told += _read(late, _ended(output=[{"type": "message", "content": content}]))
    told += _read(chat, _chunk({"refusal": "no, "}), _chunk({"refusal": "no"}, "stop"))
    assert told == []
    for reading in (early, late, chat):
        with pytest.raises(ModelError) as failed:
            reading.reply()
        assert (failed.value.reason, failed.value.transient) == ("it refused: no, no", False)


@pytest.mark.parametrize(
    ("code", "is_transient"), [("server_error", True), ("rate_limit_exceeded", True), ("invalid_prompt", False)]
)
def test_a_response_can_fail(code: str, is_transient: bool) -> None:
    failed = _ended("failed", error={"code": code, "message": "why"})
    for event in (failed, {"type": "error", "code": code, "message": "why"}):
        with pytest.raises(ModelError) as error:
            ResponsesReading().take(event)
        assert (error.value.reason, error.value.transient) == ("why", is_transient)


@pytest.mark.parametrize("event", [None, 1, [1], "x", {}, {"type": 1}, {**_delta(""), "delta": 5}, _ended(output=7)])
def test_garbage_in_a_stream_of_responses_is_noticed(event: Any) -> None:
    with pytest.raises(ValueError, match="validation error"):
        ResponsesReading().take(event)


def _chunk(delta: dict[str, Any] | None, finish_reason: str | None = None, **more: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}], **more}


def test_chunks_are_read_to_their_end() -> None:
    reading = ChatReading()
    calls = [
        {"tool_calls": [{"index": 0, "id": "c", "function": {"name": "add", "arguments": '{"a"'}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": ":1}"}}]},
    ]
    start = (_chunk({"content": ""}), _chunk({"content": "he"}), _chunk({"content": "y"}))
    assert _read(reading, *start, *map(_chunk, calls)) == ["he", "y"]
    assert not reading.is_complete
    usage = {"prompt_tokens": 3, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 1}}
    _read(reading, _chunk(None, "tool_calls"), {"choices": [], "usage": usage})
    reply = reading.reply()
    assert (reply.text, reply.usage) == ("hey", ModelUsage(3, 2, 1))
    assert reply.tool_calls == (ToolCall("c", "add", '{"a":1}'),)


def test_calls_whose_pieces_come_in_turn_are_kept_apart() -> None:
    reading = ChatReading()
    for index, text in ((1, '{"b"'), (0, '{"a"'), (1, ":2}"), (0, ":1}")):
        function = {"name": f"t{index}" if text[0] == "{" else None, "arguments": text}
        piece = {"index": index, "id": f"c{index}" if text[0] == "{" else None, "function": function}
        _read(reading, _chunk({"tool_calls": [piece]}))
    _read(reading, _chunk({}, "tool_calls"))
    assert reading.reply().tool_calls == (ToolCall("c0", "t0", '{"a":1}'), ToolCall("c1", "t1", '{"b":2}'))


def test_calls_without_an_index_are_told_apart_by_their_ids() -> None:
    reading = ChatReading()
    pieces = ({"id": "a", "function": {"name": "t", "arguments": "{"}}, {"function": {"arguments": "}"}})
    for piece in (*pieces, {"id": "b", "function": {"name": "u", "arguments": "{}"}}):
        _read(reading, _chunk({"tool_calls": [piece]}))
    _read(reading, _chunk({}, "tool_calls"))
    assert reading.reply().tool_calls == (ToolCall("a", "t", "{}"), ToolCall("b", "u", "{}"))


def test_a_call_without_a_name_is_garbage() -> None:
    responses, chat = ResponsesReading(), ChatReading()
    _read(responses, {"type": "response.output_item.done", "item": {"type": "function_call", "call_id": "c"}}, _ended())
    _read(chat, _chunk({"tool_calls": [{"index": 0, "id": "c"}]}, "tool_calls"))
    for reading in (responses, chat):
        with pytest.raises(ModelError) as failed:
            reading.reply()
        assert failed.value.transient


@pytest.mark.parametrize(("arguments", "is_whole"), [('{"a": 1}', True), ('{"a": ', False), ("", False)])
def test_of_an_answer_that_was_cut_short_only_whole_calls_are_taken(arguments: str, is_whole: bool) -> None:
    responses, chat = ResponsesReading(), ChatReading()
    item = {"type": "function_call", "call_id": "c", "name": "t", "arguments": arguments}
    ended = _ended("incomplete", incomplete_details={"reason": "max_output_tokens"})
    _read(responses, {"type": "response.output_item.done", "item": item}, ended)
    piece = {"index": 0, "id": "c", "function": {"name": "t", "arguments": arguments}}
    _read(chat, _chunk({"tool_calls": [piece]}, "length"))
    for reading in (responses, chat):
        if is_whole:
            assert reading.reply().tool_calls == (ToolCall("c", "t", arguments),)
            continue
        with pytest.raises(ModelError) as failed:
            reading.reply()
        assert not failed.value.transient


@pytest.mark.parametrize("event", [None, 1, [1], "x", {"choices": 1}, _chunk({"content": 5}), {"choices": ["x"]}])
def test_garbage_in_a_stream_of_chunks_is_noticed(event: Any) -> None:
    with pytest.raises(ValueError, match="validation error"):
        ChatReading().take(event)


@pytest.mark.parametrize(
    ("reading", "events"),
    [
        (ResponsesReading(), [_delta("hal")]),
        (ResponsesReading(), []),
        (ChatReading(), [_chunk({"content": "hal"})]),
        (ChatReading(), []),
        (ResponsesReading(), [_ended()]),
        (ChatReading(), [_chunk({"content": " \n"}, "stop")]),
    ],
)
def test_half_and_wordless_answers_fail_and_another_attempt_may_help(reading: Reading, events: list[Any]) -> None:
    _read(reading, *events)
    with pytest.raises(ModelError) as failed:
        reading.reply()
    assert failed.value.transient


def test_an_answer_that_was_cut_short_is_taken_as_far_as_it_goes() -> None:
    responses, chat = ResponsesReading(), ChatReading()
    _read(responses, _delta("be"), _ended("incomplete", incomplete_details={"reason": "max_output_tokens"}))
    _read(chat, _chunk({"content": "be"}, "length"))
    assert [responses.reply().text, chat.reply().text] == ["be", "be"]


def test_an_answer_that_was_cut_before_its_first_word_fails_for_good() -> None:
    responses, chat = ResponsesReading(), ChatReading()
    _read(responses, _ended("incomplete", incomplete_details={"reason": "max_output_tokens"}))
    _read(chat, _chunk({}, "content_filter"))
    for reading in (responses, chat):
        with pytest.raises(ModelError) as failed:
            reading.reply()
        assert not failed.value.transient
