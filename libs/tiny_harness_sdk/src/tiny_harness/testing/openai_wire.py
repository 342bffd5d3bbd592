"""The requests of OpenAI that the test server takes: as strict as the real one, and more where it knows less."""

import json
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, PositiveInt, StringConstraints, field_validator, model_validator

from tiny_harness.testing.model_orders import Asked, Entry

Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
Name = Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9_-]{1,64}$")]
ChatId = Annotated[str, StringConstraints(min_length=1, max_length=40)]
ResponsesId = Annotated[str, StringConstraints(min_length=1, max_length=64)]
NOT_AT_THE_TOP: Final = frozenset({"oneOf", "anyOf", "allOf", "enum", "not"})


class Body(BaseModel):
    """Base of all bodies: what is unknown or of another type is refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Words(Body):
    """A message of the conversation."""

    role: Literal["user", "assistant", "system", "developer"]
    content: str


class CalledFunction(Body):
    """A function and its arguments, in a message of the model."""

    name: Name
    arguments: str

    @field_validator("arguments")
    @classmethod
    def _are_an_object(cls, arguments: str) -> str:
        return object_text(arguments)


def object_text(arguments: str) -> str:
    """Refuse arguments that are no JSON object: compatible servers parse them."""
    if not isinstance(json.loads(arguments), dict):
        raise ValueError("arguments are no object")
    return arguments


def checked_schema(parameters: dict[str, Any]) -> dict[str, Any]:
    """Refuse a schema that OpenAI refuses."""
    if parameters.get("type") != "object" or not isinstance(parameters.get("properties"), dict):
        raise ValueError("object schema missing properties")
    if NOT_AT_THE_TOP & parameters.keys():
        raise ValueError(f"schema must not have {sorted(NOT_AT_THE_TOP & parameters.keys())} at the top level")
    return parameters


def need_unique(names: Iterable[str]) -> None:
    """Refuse two tools with one name."""
    listed = list(names)
    if len(set(listed)) < len(listed):
        raise ValueError("tool names must be unique")


# --- Responses ---


class Reasoning(Body):
    """How hard the model thinks."""

    effort: Effort


class FunctionCall(CalledFunction):
    """A call that the model made."""

    type: Literal["function_call"]
    call_id: ResponsesId


class FunctionCallOutput(Body):
    """What came of it."""

    type: Literal["function_call_output"]
    call_id: ResponsesId
    output: str


class ResponsesTool(Body):
    """A function that the model may call."""

    type: Literal["function"]
    name: Name
    description: str | None = None
    parameters: dict[str, Any]
    strict: bool

    _schema = field_validator("parameters")(checked_schema)

    @model_validator(mode="after")
    def _strict_is_closed(self) -> "ResponsesTool":
        if self.strict and self.parameters.get("additionalProperties") is not False:
            raise ValueError("'additionalProperties' is required to be supplied and to be false")
        return self


class ResponsesBody(Body):
    """The body of `POST /v1/responses`, as far as this server knows it."""

    model: str = Field(min_length=1)
    input: list[Words | FunctionCall | FunctionCallOutput] = Field(min_length=1)
    stream: Literal[True]
    instructions: str | None = None
    tools: list[ResponsesTool] | None = Field(default=None, min_length=1)
    reasoning: Reasoning | None = None
    max_output_tokens: PositiveInt | None = None

    @model_validator(mode="after")
    def _calls_have_outputs(self) -> "ResponsesBody":
        need_unique(tool.name for tool in self.tools or ())
        called: set[str] = set()
        for item in self.input:
            if isinstance(item, FunctionCall):
                called.add(item.call_id)
            elif isinstance(item, FunctionCallOutput):
                if item.call_id not in called:
                    raise ValueError(f"No tool call found for function call output with call_id {item.call_id}.")
                called.remove(item.call_id)
        if called:
            raise ValueError(f"No tool output found for function call {sorted(called)[0]}.")
        return self

    def asked(self) -> Asked:
        """Say what was asked."""
        tools = [Entry("tools", json.dumps([tool.model_dump() for tool in self.tools]))] if self.tools else []
        system = [Entry("system", self.instructions)] if self.instructions else []
        return Asked(self.model, (*tools, *system, *map(_responses_entry, self.input)))


def _responses_entry(item: Words | FunctionCall | FunctionCallOutput) -> Entry:
    match item:
        case FunctionCall():
            return Entry("assistant", f"{item.name} {item.arguments}")
        case FunctionCallOutput():
            return Entry("tool", item.output)
        case Words():
            return Entry(item.role, item.content)


# --- Chat Completions ---


class StreamOptions(Body):
    """What a stream carries besides the answer."""

    include_usage: bool


class ChatCall(Body):
    """A call that the model made."""

    id: ChatId
    type: Literal["function"]
    function: CalledFunction


class CallingWords(Body):
    """A message of the model that holds calls."""

    role: Literal["assistant"]
    content: str | None
    tool_calls: list[ChatCall] = Field(min_length=1)


class ChatResult(Body):
    """What came of a call."""

    role: Literal["tool"]
    tool_call_id: ChatId
    content: str


class ChatFunction(Body):
    """A function that the model may call."""

    name: Name
    description: str | None = None
    parameters: dict[str, Any]

    _schema = field_validator("parameters")(checked_schema)


class ChatTool(Body):
    """Its frame."""

    type: Literal["function"]
    function: ChatFunction


class ChatBody(Body):
    """The body of `POST /v1/chat/completions`, as far as this server knows it."""

    model: str = Field(min_length=1)
    messages: list[Words | CallingWords | ChatResult] = Field(min_length=1)
    stream: Literal[True]
    stream_options: StreamOptions | None = None
    tools: list[ChatTool] | None = Field(default=None, min_length=1)
    reasoning_effort: Effort | None = None
    max_completion_tokens: PositiveInt | None = None

    @model_validator(mode="after")
    def _results_follow_their_calls(self) -> "ChatBody":
        need_unique(tool.function.name for tool in self.tools or ())
        open_calls: set[str] = set()
        for message in self.messages:
            if isinstance(message, ChatResult):
                if message.tool_call_id not in open_calls:
                    raise ValueError("messages with role 'tool' must follow a message with their 'tool_calls'")
                open_calls.remove(message.tool_call_id)
                continue
            _need_answers(open_calls)
            if isinstance(message, CallingWords):
                open_calls = {call.id for call in message.tool_calls}
        _need_answers(open_calls)
        return self

    def asked(self) -> Asked:
        """Say what was asked."""
        tools = [Entry("tools", json.dumps([tool.model_dump() for tool in self.tools]))] if self.tools else []
        said = [entry for message in self.messages for entry in _chat_entries(message)]
        return Asked(self.model, (*tools, *said), bool(self.stream_options and self.stream_options.include_usage))


def _need_answers(open_calls: set[str]) -> None:
    if open_calls:
        raise ValueError(f"these tool_call_ids did not have response messages: {sorted(open_calls)}")


def _chat_entries(message: Words | CallingWords | ChatResult) -> Iterator[Entry]:
    match message:
        case CallingWords():
            yield Entry("assistant", message.content or "")
            for call in message.tool_calls:
                yield Entry("assistant", f"{call.function.name} {call.function.arguments}")
        case ChatResult():
            yield Entry("tool", message.content)
        case Words():
            yield Entry(message.role, message.content)
