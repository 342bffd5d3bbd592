"""The streams of OpenAI that the test server sends."""

from collections.abc import Iterator
from typing import Any

from tiny_harness.testing.model_orders import Answer, Asked, Called
from tiny_harness.testing.sse import event, pieces

Json = dict[str, Any]


def responses_frames(asked: Asked, answer: Answer) -> Iterator[str]:
    """Frame an answer of the Responses API: created, deltas, calls, completed."""
    response: Json = {"id": "resp_1", "object": "response", "created_at": 0, "model": asked.model}
    response |= {"output": [], "parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
    yield event({"type": "response.created", "sequence_number": 0, "response": response | {"status": "in_progress"}})
    kind, key = ("refusal", "refusal") if answer.refusal else ("output_text", "text")
    text = answer.refusal or answer.text
    place = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    for number, piece in enumerate(pieces(text), start=1):
        yield event({"type": f"response.{kind}.delta", "sequence_number": number, "delta": piece, **place})
    content = [{"type": kind, key: text, "annotations": []}] if text else []
    message = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": content}
    for number, call in enumerate(answer.calls, start=1):
        yield from _function_call(number, call, answer.is_short)
    calls = [_call_item(number, call, answer.is_short) for number, call in enumerate(answer.calls, start=1)]
    ended: Json = {"output": [message, *calls], "usage": _responses_usage(asked, answer)}
    word = "incomplete" if answer.is_short else "completed"
    if answer.is_short:
        ended["incomplete_details"] = {"reason": "max_output_tokens"}
    yield event({"type": f"response.{word}", "sequence_number": 99, "response": response | ended | {"status": word}})


def _function_call(number: int, call: Called, is_short: bool) -> Iterator[str]:
    place = {"output_index": number, "item_id": f"fc_{number}", "sequence_number": 50 + number}
    item = _call_item(number, call, is_short)
    begun = item | {"arguments": "", "status": "in_progress"}
    yield event({"type": "response.output_item.added", "item": begun, **place})
    for piece in pieces(call.arguments):
        yield event({"type": "response.function_call_arguments.delta", "delta": piece, **place})
    yield event({"type": "response.output_item.done", "item": item, **place})


def _call_item(number: int, call: Called, is_short: bool) -> Json:
    status = "incomplete" if is_short else "completed"
    item = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "status": status}
    return item | {"name": call.name, "arguments": call.arguments}


def _responses_usage(asked: Asked, answer: Answer) -> Json:
    counts: Json = {"input_tokens": asked.tokens, "output_tokens": answer.tokens}
    details = {"input_tokens_details": {"cached_tokens": answer.cached, "cache_write_tokens": answer.written}}
    more = {"output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": asked.tokens + answer.tokens}
    return counts | details | more


def chat_frames(asked: Asked, answer: Answer) -> Iterator[str]:
    """Frame an answer of the Chat Completions API: chunks, a reason to finish, the usage, `[DONE]`."""
    base: Json = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 0, "model": asked.model}

    def chunk(delta: Json, finish_reason: str | None = None) -> str:
        return event(base | {"choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]})

    yield chunk({"role": "assistant", "content": ""})
    for piece in pieces(answer.refusal or answer.text):
        yield chunk({"refusal" if answer.refusal else "content": piece})
    for index, call in enumerate(answer.calls):
        header = {"index": index, "id": f"call_{index}", "type": "function"}
        yield chunk({"tool_calls": [header | {"function": {"name": call.name, "arguments": ""}}]})
        for piece in pieces(call.arguments):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield chunk({}, "length" if answer.is_short else "tool_calls" if answer.calls else "stop")
    if asked.wants_usage:
        counts: Json = {"prompt_tokens": asked.tokens, "completion_tokens": answer.tokens}
        details = {"prompt_tokens_details": {"cached_tokens": answer.cached}}
        usage = counts | details | {"total_tokens": asked.tokens + answer.tokens}
        yield event(base | {"choices": [], "usage": usage})
    yield "data: [DONE]\n\n"


def responses_failure(code: str, message: str) -> str:
    """Frame an error inside a stream of the Responses API."""
    error = {"code": code, "message": message}
    response = {"id": "resp_1", "object": "response", "status": "failed", "output": [], "error": error}
    return event({"type": "response.failed", "sequence_number": 9, "response": response})


def chat_failure(code: str, message: str) -> str:
    """Frame an error inside a stream of the Chat Completions API."""
    return event({"error": {"code": code, "message": message}})
