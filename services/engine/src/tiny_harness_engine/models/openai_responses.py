"""OpenAI's Responses API: the body of a request, and how its stream of events is read. Needs no SDK."""

from typing import Any, Final

from tiny_harness.settings import OpenAISettings
from tiny_harness_engine.models.openai_reading import Seen, StreamError, checked
from tiny_harness_engine.models.port import ModelReply, ModelRequest, ModelUsage, ToolCall

PATH: Final = "responses"


class Usage(Seen):
    """Tokens of a call."""

    input_tokens: int | None = None
    output_tokens: int | None = None


class Content(Seen):
    """A piece of an output message."""

    text: str | None = None
    refusal: str | None = None


class Item(Seen):
    """A message or a tool call."""

    type: str
    content: list[Content] | None = None
    call_id: str | None = None
    name: str | None = None
    arguments: str | None = None


class Incomplete(Seen):
    """Why an answer was cut short."""

    reason: str | None = None


class Response(Seen):
    """The answer as the last event repeats it."""

    output: list[Item] | None = None
    usage: Usage | None = None
    error: StreamError | None = None
    incomplete_details: Incomplete | None = None


class Kind(Seen):
    """What every event has."""

    type: str


class Delta(Seen):
    """A piece of text, or of a refusal."""

    delta: str


class ItemDone(Seen):
    """An item is complete."""

    item: Item


class Ended(Seen):
    """The response is complete, incomplete or failed."""

    response: Response


def body(settings: OpenAISettings, request: ModelRequest) -> dict[str, Any]:
    """Write the body of a request."""
    content: dict[str, Any] = {
        "model": request.model or settings.model,
        "input": [{"role": message.role, "content": message.text} for message in request.messages],
        "stream": True,
    }
    if request.effort is not None:
        content["reasoning"] = {"effort": request.effort}
    if settings.max_output_tokens is not None:
        content["max_output_tokens"] = settings.max_output_tokens
    return content


class ResponsesReading:
    """An answer that is being read. A refusal is text like any other."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._calls: list[ToolCall] = []
        self._response: Response | None = None

    @property
    def is_complete(self) -> bool:
        """Whether the response has ended."""
        return self._response is not None

    def take(self, event: object) -> str:
        """Read an event and give the text that it adds."""
        match Kind.model_validate(event).type:
            case "response.output_text.delta" | "response.refusal.delta":
                return self._add(Delta.model_validate(event).delta)
            case "response.output_item.done":
                self._add_call(ItemDone.model_validate(event).item)
            case "response.completed" | "response.incomplete":
                return self._end(Ended.model_validate(event).response)
            case "response.failed":
                raise (Ended.model_validate(event).response.error or StreamError()).as_model_error()
            case "error":
                raise StreamError.model_validate(event).as_model_error()
            case _:
                pass
        return ""

    def reply(self) -> ModelReply:
        """Give the whole answer."""
        response = self._response or Response()
        usage = response.usage or Usage()
        reply = ModelReply(
            "".join(self._pieces), tuple(self._calls), ModelUsage(usage.input_tokens or 0, usage.output_tokens or 0)
        )
        stopped_by = (response.incomplete_details or Incomplete()).reason or ""
        return checked(reply, self.is_complete, stopped_by)

    def _add(self, text: str) -> str:
        self._pieces.append(text)
        return text

    def _add_call(self, item: Item) -> None:
        if item.type == "function_call":
            self._calls.append(ToolCall(item.call_id or "", item.name or "", item.arguments or ""))

    def _end(self, response: Response) -> str:
        """Take the last event; a server that streams no deltas has all its text in there."""
        self._response = response
        if self._pieces:
            return ""
        contents = [content for item in response.output or () for content in item.content or ()]
        return self._add("".join(content.text or content.refusal or "" for content in contents))


def open_reading() -> ResponsesReading:
    """Begin to read an answer."""
    return ResponsesReading()
