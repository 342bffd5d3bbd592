"""OpenAI's Responses API: the body of a request, and how its stream of events is read. Needs no SDK."""

from collections.abc import Iterator
from typing import Any

from tiny_harness.settings import OpenAISettings
from tiny_harness_engine.models.calls import accepted_schema, as_json, result_text
from tiny_harness_engine.models.failure import Failure
from tiny_harness_engine.models.port import ModelMessage, ModelReply, ModelRequest, ModelUsage, ToolCall, ToolSpec
from tiny_harness_engine.models.reading import Seen, checked
from tiny_harness_engine.models.wire_names import WireNames, wire_id


class InputDetails(Seen):
    """Where the tokens of the input came from."""

    cached_tokens: int | None = None


class Usage(Seen):
    """Tokens of a call."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    input_tokens_details: InputDetails | None = None

    def counted(self) -> ModelUsage:
        """Count them our way."""
        cached = (self.input_tokens_details or InputDetails()).cached_tokens
        return ModelUsage(self.input_tokens or 0, self.output_tokens or 0, cached or 0)


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
    error: Failure | None = None
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


class Broken(Seen):
    """The stream ends with an error; its `type` is only the event's."""

    code: str | None = None
    message: str | None = None


def body(settings: OpenAISettings, request: ModelRequest, names: WireNames) -> dict[str, Any]:
    """Write the body of a request."""
    content: dict[str, Any] = {
        "model": request.model or settings.model,
        "input": [item for message in request.messages for item in _items(message, names)],
        "stream": True,
    }
    if request.system:
        content["instructions"] = request.system
    if request.tools:
        content["tools"] = [_tool(tool, names) for tool in request.tools]
    if request.effort is not None:
        content["reasoning"] = {"effort": request.effort}
    if settings.max_output_tokens is not None:
        content["max_output_tokens"] = settings.max_output_tokens
    return content


def _items(message: ModelMessage, names: WireNames) -> Iterator[dict[str, Any]]:
    if message.role == "tool":
        yield {
            "type": "function_call_output",
            "call_id": wire_id(message.call_id),
            "output": result_text(message),
        }
        return
    if message.text or not message.tool_calls:
        yield {"role": message.role, "content": message.text}
    for call in message.tool_calls:
        yield {
            "type": "function_call",
            "call_id": wire_id(call.call_id),
            "name": names.wire(call.name),
            "arguments": as_json(call.arguments),
        }


def _tool(tool: ToolSpec, names: WireNames) -> dict[str, Any]:
    return {
        "type": "function",
        "name": names.wire(tool.name),
        "description": tool.description,
        "parameters": accepted_schema(tool.parameters),
        "strict": False,  # this API's default is true, which refuses most schemas that people write
    }


class ResponsesReading:
    """An answer that is being read."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._refusal: list[str] = []
        self._calls: list[ToolCall] = []
        self._response: Response | None = None

    @property
    def is_complete(self) -> bool:
        """Whether the response has ended."""
        return self._response is not None

    def take(self, event: object) -> str:
        """Read an event and give the text that it adds."""
        match Kind.model_validate(event).type:
            case "response.output_text.delta":
                return self._add(Delta.model_validate(event).delta)
            case "response.refusal.delta":
                self._refusal.append(Delta.model_validate(event).delta)
            case "response.output_item.done":
                self._add_call(ItemDone.model_validate(event).item)
            case "response.completed" | "response.incomplete":
                return self._end(Ended.model_validate(event).response)
            case "response.failed":
                raise (Ended.model_validate(event).response.error or Failure()).in_stream()
            case "error":
                broken = Broken.model_validate(event)
                raise Failure(code=broken.code, message=broken.message).in_stream()
            case _:
                pass
        return ""

    def reply(self) -> ModelReply:
        """Give the whole answer."""
        response = self._response or Response()
        reply = ModelReply("".join(self._pieces), tuple(self._calls), (response.usage or Usage()).counted())
        stopped_by = (response.incomplete_details or Incomplete()).reason or ""
        return checked(reply, self.is_complete, stopped_by, "".join(self._refusal))

    def _add(self, text: str) -> str:
        self._pieces.append(text)
        return text

    def _add_call(self, item: Item) -> None:
        if item.type == "function_call":
            self._calls.append(ToolCall(item.call_id or "", item.name or "", item.arguments or ""))

    def _end(self, response: Response) -> str:
        """Take the last event; a server that streams no pieces has all that it says in there."""
        self._response = response
        items = response.output or ()
        if not self._calls:
            for item in items:
                self._add_call(item)
        contents = [content for item in items for content in item.content or ()]
        if not self._refusal:
            self._refusal += [content.refusal or "" for content in contents]
        return "" if self._pieces else self._add("".join(content.text or "" for content in contents))
