"""OpenAI's Chat Completions API: the body of a request, and how its stream of chunks is read. Needs no SDK."""

from dataclasses import dataclass
from typing import Any, Final

from tiny_harness.settings import OpenAISettings
from tiny_harness_engine.models.openai_reading import Seen, checked
from tiny_harness_engine.models.port import ModelReply, ModelRequest, ModelUsage, ToolCall

PATH: Final = "chat.completions"
CUT_SHORT: Final = frozenset({"length", "content_filter"})


class Function(Seen):
    """A piece of a tool call."""

    name: str | None = None
    arguments: str | None = None


class CallPiece(Seen):
    """A piece of the tool call at `index`; its id comes with the first."""

    index: int
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


class Usage(Seen):
    """Tokens of a call."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class Chunk(Seen):
    """A chunk of the stream; the one with `usage` comes last and may have no choice."""

    choices: list[Choice] | None = None
    usage: Usage | None = None


@dataclass
class _Call:
    call_id: str = ""
    name: str = ""
    arguments: str = ""


def body(settings: OpenAISettings, request: ModelRequest) -> dict[str, Any]:
    """Write the body of a request."""
    content: dict[str, Any] = {
        "model": request.model or settings.model,
        "messages": [{"role": message.role, "content": message.text} for message in request.messages],
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if request.effort is not None:
        content["reasoning_effort"] = request.effort
    if settings.max_output_tokens is not None:
        content["max_completion_tokens"] = settings.max_output_tokens
    return content


class ChatReading:
    """An answer that is being read. A refusal is text like any other."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
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
        calls = (self._calls[index] for index in sorted(self._calls))
        reply = ModelReply(
            "".join(self._pieces),
            tuple(ToolCall(call.call_id, call.name, call.arguments) for call in calls),
            ModelUsage(self._usage.prompt_tokens or 0, self._usage.completion_tokens or 0),
        )
        return checked(reply, self.is_complete, self._finish_reason if self._finish_reason in CUT_SHORT else "")

    def _add(self, choice: Choice) -> str:
        self._finish_reason = choice.finish_reason or self._finish_reason
        delta = choice.delta or Delta()
        for piece in delta.tool_calls or ():
            call = self._calls.setdefault(piece.index, _Call())
            function = piece.function or Function()
            call.call_id = call.call_id or piece.id or ""
            call.name += function.name or ""
            call.arguments += function.arguments or ""
        return (delta.content or "") + (delta.refusal or "")


def open_reading() -> ChatReading:
    """Begin to read an answer."""
    return ChatReading()
