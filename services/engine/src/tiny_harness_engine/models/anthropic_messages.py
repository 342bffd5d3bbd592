"""Anthropic's Messages API: the body of a request, and how its stream of events is read. Needs no SDK."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

from tiny_harness.settings import AnthropicSettings
from tiny_harness_engine.models.calls import accepted_schema, as_object
from tiny_harness_engine.models.port import ModelMessage, ModelReply, ModelRequest, ModelUsage, ToolCall, ToolSpec
from tiny_harness_engine.models.reading import Seen, checked
from tiny_harness_engine.models.wire_names import WireNames, wire_id

WHOLE: Final = frozenset({"end_turn", "stop_sequence", "tool_use"})
REFUSED: Final = "refusal"
MARK: Final = {"cache_control": {"type": "ephemeral"}}
"""Ends a prefix that the provider may cache; four may stand in a request."""
EARLIER: Final = "(The conversation began earlier.)"
"""Stands first where the window begins with the model's own words: the API wants a user's there."""

Block = dict[str, Any]


class Usage(Seen):
    """Tokens of a call, as counted so far; those of the input that came from the cache or went there stand apart."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None


class Message(Seen):
    """The answer as it begins."""

    usage: Usage | None = None


class Content(Seen):
    """A block as it begins."""

    type: str
    text: str | None = None
    id: str | None = None
    name: str | None = None


class Piece(Seen):
    """What is added to a block: text, or a piece of a call's arguments."""

    text: str | None = None
    partial_json: str | None = None


class StopDetails(Seen):
    """Why the model refused."""

    category: str | None = None
    explanation: str | None = None


class Stop(Seen):
    """How the answer ends."""

    stop_reason: str | None = None
    stop_details: StopDetails | None = None


class Kind(Seen):
    """What every event has."""

    type: str


class Started(Seen):
    """The first event."""

    message: Message


class BlockStarted(Seen):
    """A block begins at `index`."""

    index: int
    content_block: Content


class BlockAdded(Seen):
    """The block at `index` grows."""

    index: int
    delta: Piece


class Ended(Seen):
    """The answer has a reason to be finished."""

    delta: Stop
    usage: Usage | None = None


@dataclass
class _Call:
    call_id: str
    name: str
    arguments: str


def body(settings: AnthropicSettings, request: ModelRequest, names: WireNames) -> dict[str, Any]:
    """Write the body of a request.

    Three things end a prefix that may be cached: the tools, the system text, and the conversation, both as far as it
    was sent last time and as far as it goes now.
    """
    content: dict[str, Any] = {
        "model": request.model or settings.model,
        "max_tokens": settings.max_output_tokens,
        "messages": _messages(request.messages, names),
        "stream": True,
    }
    if request.system.strip():
        content["system"] = [{"type": "text", "text": request.system, **MARK}]
    content |= _tools(request, names)
    if request.effort is not None:
        content["output_config"] = {"effort": request.effort}
    return content


def _messages(messages: Iterable[ModelMessage], names: WireNames) -> list[dict[str, Any]]:
    """Write the conversation: a user's and a model's messages in turn, none of them empty."""
    said = [(_role(message), block) for message in messages for block in _blocks(message, names)]
    if said and said[0][0] != "user":
        said.insert(0, ("user", {"type": "text", "text": EARLIER}))
    written = [(role, [block for _, block in group]) for role, group in groupby(said, key=lambda pair: pair[0])]
    for _, blocks in [pair for pair in written if pair[0] == "user"][-2:]:
        blocks[-1] |= MARK
    return [{"role": role, "content": blocks} for role, blocks in written]


def _role(message: ModelMessage) -> str:
    return "assistant" if message.role == "assistant" else "user"


def _blocks(message: ModelMessage, names: WireNames) -> Iterator[Block]:
    if message.role == "tool":
        yield _result(message)
        return
    if message.text.strip():
        yield {"type": "text", "text": message.text}
    for call in message.tool_calls:
        yield {
            "type": "tool_use",
            "id": wire_id(call.call_id),
            "name": names.wire(call.name),
            "input": as_object(call.arguments),
        }


def _result(message: ModelMessage) -> Block:
    block: Block = {"type": "tool_result", "tool_use_id": wire_id(message.call_id)}
    if message.text.strip():
        block["content"] = message.text
    if message.is_error:
        block["is_error"] = True
    return block


def _tools(request: ModelRequest, names: WireNames) -> dict[str, Any]:
    """Offer the tools. A conversation with calls is refused where there are none: then they are named, not offered."""
    told = {call.name for message in request.messages for call in message.tool_calls}
    offered = request.tools or [ToolSpec(name, "", {}) for name in sorted(told)]
    if not offered:
        return {}
    written = [_tool(tool, names) for tool in offered]
    written[-1] |= MARK
    return {"tools": written} if request.tools else {"tools": written, "tool_choice": {"type": "none"}}


def _tool(tool: ToolSpec, names: WireNames) -> dict[str, Any]:
    written: dict[str, Any] = {"name": names.wire(tool.name)}
    if tool.description:
        written["description"] = tool.description
    return written | {"input_schema": accepted_schema(tool.parameters)}


class MessagesReading:
    """An answer that is being read. What the model thinks is no part of it."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._calls: dict[int, _Call] = {}
        self._usage: dict[str, int] = {}
        self._stop = Stop()

    @property
    def is_complete(self) -> bool:
        """Whether the answer has a reason to be finished."""
        return bool(self._stop.stop_reason)

    def take(self, event: object) -> str:
        """Read an event and give the text that it adds."""
        match Kind.model_validate(event).type:
            case "message_start":
                self._count(Started.model_validate(event).message.usage)
            case "content_block_start":
                started = BlockStarted.model_validate(event)
                return self._begin(started.index, started.content_block)
            case "content_block_delta":
                added = BlockAdded.model_validate(event)
                return self._grow(added.index, added.delta)
            case "message_delta":
                ended = Ended.model_validate(event)
                self._stop = ended.delta
                self._count(ended.usage)
            case _:
                pass
        return ""

    def reply(self) -> ModelReply:
        """Give the whole answer."""
        calls = (self._calls[index] for index in sorted(self._calls))
        text = "".join(self._pieces)
        made = tuple(ToolCall(call.call_id, call.name, call.arguments) for call in calls)
        reason = self._stop.stop_reason or ""
        stopped_by = "" if reason in WHOLE or reason == REFUSED else reason
        return checked(ModelReply(text, made, self._counted()), self.is_complete, stopped_by, self._refusal())

    def _begin(self, index: int, content: Content) -> str:
        if content.type == "tool_use":
            self._calls[index] = _Call(content.id or "", content.name or "", "")
        return self._add(content.text or "") if content.type == "text" else ""

    def _grow(self, index: int, piece: Piece) -> str:
        if piece.partial_json is not None and index in self._calls:
            self._calls[index].arguments += piece.partial_json
        return self._add(piece.text or "")

    def _add(self, text: str) -> str:
        self._pieces.append(text)
        return text

    def _count(self, usage: Usage | None) -> None:
        """Take the newer numbers: each event counts from the beginning, but may leave some out."""
        self._usage |= (usage or Usage()).model_dump(exclude_none=True)

    def _counted(self) -> ModelUsage:
        counts = Usage.model_validate(self._usage)
        read = counts.cache_read_input_tokens or 0
        written = counts.cache_creation_input_tokens or 0
        return ModelUsage((counts.input_tokens or 0) + read + written, counts.output_tokens or 0, read)

    def _refusal(self) -> str:
        if self._stop.stop_reason != REFUSED:
            return ""
        details = self._stop.stop_details or StopDetails()
        return details.explanation or details.category or "".join(self._pieces).strip() or "it gave no reason"
