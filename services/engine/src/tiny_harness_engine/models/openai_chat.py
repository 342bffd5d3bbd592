"""OpenAI's Chat Completions API: the body of a request, and how its stream of chunks is read. Needs no SDK."""

from dataclasses import dataclass
from typing import Any, Final

from tiny_harness.settings import OpenAISettings
from tiny_harness_engine.models.calls import accepted_schema, as_json, result_text
from tiny_harness_engine.models.port import ModelMessage, ModelReply, ModelRequest, ModelUsage, ToolCall, ToolSpec
from tiny_harness_engine.models.reading import Seen, checked
from tiny_harness_engine.models.wire_names import WireNames, wire_id

CUT_SHORT: Final = frozenset({"length", "content_filter"})


class Function(Seen):
    """A piece of a tool call."""

    name: str | None = None
    arguments: str | None = None


class CallPiece(Seen):
    """A piece of the tool call at `index`; its id comes with the first. Some servers give no index."""

    index: int | None = None
    id: str | None = None
    function: Function | None = None


class Delta(Seen):
    """What a chunk adds."""

    content: str | None = None
    refusal: str | None = None
    tool_calls: list[CallPiece] | None = None


class Choice(Seen):
    """One of the answers; we ask for one."""

    index: int = 0
    delta: Delta | None = None
    finish_reason: str | None = None


class PromptDetails(Seen):
    """Where the tokens of the input came from."""

    cached_tokens: int | None = None


class Usage(Seen):
    """Tokens of a call."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: PromptDetails | None = None

    def counted(self) -> ModelUsage:
        """Count them our way."""
        cached = (self.prompt_tokens_details or PromptDetails()).cached_tokens
        return ModelUsage(self.prompt_tokens or 0, self.completion_tokens or 0, cached or 0)


class Chunk(Seen):
    """A chunk of the stream; the one with `usage` comes last and may have no choice."""

    choices: list[Choice] | None = None
    usage: Usage | None = None


@dataclass
class _Call:
    call_id: str = ""
    name: str = ""
    arguments: str = ""


def body(settings: OpenAISettings, request: ModelRequest, names: WireNames) -> dict[str, Any]:
    """Write the body of a request."""
    system = [{"role": "system", "content": request.system}] if request.system else []
    content: dict[str, Any] = {
        "model": request.model or settings.model,
        "messages": [*system, *(_message(message, names) for message in request.messages)],
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if request.tools:
        content["tools"] = [_tool(tool, names) for tool in request.tools]
    if request.effort is not None:
        content["reasoning_effort"] = request.effort
    if settings.max_output_tokens is not None:
        content["max_completion_tokens"] = settings.max_output_tokens
    return content


def _message(message: ModelMessage, names: WireNames) -> dict[str, Any]:
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": wire_id(message.call_id), "content": result_text(message)}
    if not message.tool_calls:
        return {"role": message.role, "content": message.text}
    calls = [
        {
            "id": wire_id(call.call_id),
            "type": "function",
            "function": {"name": names.wire(call.name), "arguments": as_json(call.arguments)},
        }
        for call in message.tool_calls
    ]
    return {"role": message.role, "content": message.text or None, "tool_calls": calls}


def _tool(tool: ToolSpec, names: WireNames) -> dict[str, Any]:
    function = {
        "name": names.wire(tool.name),
        "description": tool.description,
        "parameters": accepted_schema(tool.parameters),
    }
    return {"type": "function", "function": function}


class ChatReading:
    """An answer that is being read."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._refusal: list[str] = []
        self._calls: dict[int, _Call] = {}
        self._finish_reason = ""
        self._usage = Usage()

    @property
    def is_complete(self) -> bool:
        """Whether the answer has a reason to be finished; the usage may still follow."""
        return bool(self._finish_reason)

    def take(self, event: object) -> str:
        """Read a chunk and give the text that it adds."""
        chunk = Chunk.model_validate(event)
        self._usage = chunk.usage or self._usage
        text = "".join(self._add(choice) for choice in chunk.choices or () if choice.index == 0)
        self._pieces.append(text)
        return text

    def reply(self) -> ModelReply:
        """Give the whole answer."""
        calls = tuple(ToolCall(call.call_id, call.name, call.arguments) for _index, call in sorted(self._calls.items()))
        reply = ModelReply("".join(self._pieces), calls, self._usage.counted())
        stopped_by = self._finish_reason if self._finish_reason in CUT_SHORT else ""
        return checked(reply, self.is_complete, stopped_by, "".join(self._refusal))

    def _add(self, choice: Choice) -> str:
        self._finish_reason = choice.finish_reason or self._finish_reason
        delta = choice.delta or Delta()
        self._refusal.append(delta.refusal or "")
        for piece in delta.tool_calls or ():
            self._add_piece(piece, piece.function or Function())
        return delta.content or ""

    def _add_piece(self, piece: CallPiece, function: Function) -> None:
        newest = max(self._calls, default=-1)
        index = piece.index if piece.index is not None else newest + bool(piece.id or newest < 0)
        call = self._calls.setdefault(index, _Call())
        call.call_id = call.call_id or piece.id or ""
        call.name += function.name or ""
        call.arguments += function.arguments or ""
