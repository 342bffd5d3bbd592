"""The wire formats of OpenAI that the test server speaks: strict bodies, and streams of server-sent events."""

import json
from collections.abc import Iterator
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, PositiveInt

CHUNK_CHARS: Final = 8
Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]


class Body(BaseModel):
    """Base of all bodies: what is unknown or of another type is refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Words(Body):
    """A message of the conversation."""

    role: Literal["user", "assistant", "system", "developer"]
    content: str


class Reasoning(Body):
    """How hard the model thinks, in the Responses API."""

    effort: Effort


class ResponsesBody(Body):
    """The body of `POST /v1/responses`, as far as this server knows it."""

    model: str = Field(min_length=1)
    input: list[Words] = Field(min_length=1)
    stream: Literal[True]
    reasoning: Reasoning | None = None
    max_output_tokens: PositiveInt | None = None

    @property
    def words(self) -> list[Words]:
        """The conversation."""
        return self.input


class StreamOptions(Body):
    """What a stream carries besides the answer."""

    include_usage: bool


class ChatBody(Body):
    """The body of `POST /v1/chat/completions`, as far as this server knows it."""

    model: str = Field(min_length=1)
    messages: list[Words] = Field(min_length=1)
    stream: Literal[True]
    stream_options: StreamOptions | None = None
    reasoning_effort: Effort | None = None
    max_completion_tokens: PositiveInt | None = None

    @property
    def words(self) -> list[Words]:
        """The conversation."""
        return self.messages


def event(data: dict[str, Any] | list[Any]) -> str:
    """Frame an event, named by its type if it has one."""
    name = f"event: {data['type']}\n" if isinstance(data, dict) and "type" in data else ""
    return f"{name}data: {json.dumps(data)}\n\n"


def responses_events(body: ResponsesBody, text: str, is_refusal: bool) -> Iterator[str]:
    """Frame an answer of the Responses API: created, deltas, completed."""
    response: dict[str, Any] = {"id": "resp_1", "object": "response", "created_at": 0, "model": body.model}
    response |= {"output": [], "parallel_tool_calls": False, "tool_choice": "auto", "tools": []}
    yield event({"type": "response.created", "sequence_number": 0, "response": response | {"status": "in_progress"}})
    kind, key = ("refusal", "refusal") if is_refusal else ("output_text", "text")
    place = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    for number, piece in enumerate(pieces(text), start=1):
        yield event({"type": f"response.{kind}.delta", "sequence_number": number, "delta": piece, **place})
    content = [{"type": kind, key: text, "annotations": []}] if text else []
    item = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": content}
    usage = usage_of(body.words, text, ("input_tokens", "output_tokens"))
    done = response | {"status": "completed", "output": [item], "usage": usage}
    yield event({"type": "response.completed", "sequence_number": 99, "response": done})


def chat_events(body: ChatBody, text: str, is_refusal: bool) -> Iterator[str]:
    """Frame an answer of the Chat Completions API: chunks, a reason to finish, the usage, `[DONE]`."""
    base: dict[str, Any] = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 0, "model": body.model}

    def chunk(delta: dict[str, Any], finish_reason: str | None = None) -> str:
        return event(base | {"choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]})

    yield chunk({"role": "assistant", "content": ""})
    for piece in pieces(text):
        yield chunk({"refusal" if is_refusal else "content": piece})
    yield chunk({}, "stop")
    if body.stream_options and body.stream_options.include_usage:
        usage = usage_of(body.words, text, ("prompt_tokens", "completion_tokens"))
        yield event(base | {"choices": [], "usage": usage})
    yield "data: [DONE]\n\n"


def pieces(text: str) -> Iterator[str]:
    """Cut a text into deltas."""
    return (text[start : start + CHUNK_CHARS] for start in range(0, len(text), CHUNK_CHARS))


def usage_of(words: list[Words], text: str, names: tuple[str, str]) -> dict[str, int]:
    """Count words as tokens: numbers that a test can foretell."""
    counts = (sum(len(message.content.split()) for message in words), len(text.split()))
    return dict(zip(names, counts, strict=True)) | {"total_tokens": sum(counts)}
