"""The streams of Anthropic that the test server sends."""

from collections.abc import Iterator
from typing import Any

from tiny_harness.testing.model_orders import Answer, Asked
from tiny_harness.testing.sse import event, pieces

Json = dict[str, Any]


def messages_frames(asked: Asked, answer: Answer) -> Iterator[str]:
    """Frame an answer of the Messages API: start, a block for the words and one for each call, the reason to stop."""
    usage = {
        "input_tokens": asked.tokens - answer.cached - answer.written,
        "cache_creation_input_tokens": answer.written,
        "cache_read_input_tokens": answer.cached,
        "output_tokens": 1,
    }
    message: Json = {"id": "msg_1", "type": "message", "role": "assistant", "model": asked.model, "content": []}
    message |= {"stop_reason": None, "stop_sequence": None, "usage": usage}
    yield event({"type": "message_start", "message": message})
    yield event({"type": "ping"})
    blocks: list[tuple[Json, list[Json]]] = []
    if answer.text:
        deltas: list[Json] = [{"type": "text_delta", "text": piece} for piece in pieces(answer.text)]
        blocks.append(({"type": "text", "text": ""}, deltas))
    for number, call in enumerate(answer.calls, start=1):
        start = {"type": "tool_use", "id": f"toolu_{number}", "name": call.name, "input": {}}
        parts = ["", *pieces(call.arguments)] if call.arguments != "{}" else [""]
        blocks.append((start, [{"type": "input_json_delta", "partial_json": part} for part in parts]))
    for index, (start, deltas) in enumerate(blocks):
        yield event({"type": "content_block_start", "index": index, "content_block": start})
        for delta in deltas:
            yield event({"type": "content_block_delta", "index": index, "delta": delta})
        yield event({"type": "content_block_stop", "index": index})
    yield event({"type": "message_delta", "delta": _stop(answer), "usage": {"output_tokens": answer.tokens}})
    yield event({"type": "message_stop"})


def _stop(answer: Answer) -> Json:
    if answer.refusal:
        details = {"type": "refusal", "category": None, "explanation": answer.refusal}
        return {"stop_reason": "refusal", "stop_sequence": None, "stop_details": details}
    reason = "max_tokens" if answer.is_short else "tool_use" if answer.calls else "end_turn"
    return {"stop_reason": reason, "stop_sequence": None}


def messages_failure(code: str, message: str) -> str:
    """Frame an error inside a stream."""
    return event({"type": "error", "error": {"type": code, "message": message}})
