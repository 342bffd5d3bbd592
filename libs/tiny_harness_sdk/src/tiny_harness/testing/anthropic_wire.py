"""The requests of Anthropic that the test server takes: as strict as the real one, and more where it knows less."""

import json
from collections.abc import Iterator
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, PositiveInt, StringConstraints, field_validator, model_validator

from tiny_harness.testing.model_orders import Asked, Entry

MAX_MARKS: Final = 4
Name = Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9_-]{1,64}$")]
Id = Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9_-]+$")]


class Body(BaseModel):
    """Base of all bodies: what is unknown or of another type is refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class CacheControl(Body):
    """Ends a prefix that is to be cached."""

    type: Literal["ephemeral"]
    ttl: Literal["5m", "1h"] | None = None


class Block(Body):
    """Base of what can end such a prefix."""

    cache_control: CacheControl | None = None


class TextBlock(Block):
    """Words."""

    type: Literal["text"]
    text: str

    @field_validator("text")
    @classmethod
    def _says_something(cls, text: str) -> str:
        if not text.strip():
            raise ValueError("text content blocks must contain non-whitespace text")
        return text


class ToolUse(Block):
    """A call that the model made."""

    type: Literal["tool_use"]
    id: Id
    name: Name
    input: dict[str, Any]


class ToolResult(Block):
    """What came of it."""

    type: Literal["tool_result"]
    tool_use_id: Id
    content: str | list[TextBlock] = ""
    is_error: bool = False

    @property
    def text(self) -> str:
        """What the tool said."""
        return self.content if isinstance(self.content, str) else "".join(block.text for block in self.content)


AnyBlock = Annotated[TextBlock | ToolUse | ToolResult, Field(discriminator="type")]


class Message(Body):
    """A message of the conversation."""

    role: Literal["user", "assistant"]
    content: str | list[AnyBlock] = Field(min_length=1)

    @property
    def blocks(self) -> list[TextBlock | ToolUse | ToolResult]:
        """Its content; words alone are one block."""
        if isinstance(self.content, str):
            return [TextBlock(type="text", text=self.content)]
        return self.content


class Tool(Block):
    """A tool that the model may call."""

    type: Literal["custom"] | None = None
    name: Name
    description: str = ""
    input_schema: dict[str, Any]

    @field_validator("input_schema")
    @classmethod
    def _is_an_objects(cls, schema: dict[str, Any]) -> dict[str, Any]:
        if schema.get("type") != "object":
            raise ValueError("input_schema.type: Input should be 'object'")
        if {"oneOf", "allOf", "anyOf"} & schema.keys():
            raise ValueError("input_schema does not support oneOf, allOf, or anyOf at the top level")
        return schema


class ToolChoice(Body):
    """Whether the model may call."""

    type: Literal["auto", "any", "none"]


class OutputConfig(Body):
    """How hard the model works."""

    effort: Literal["low", "medium", "high", "xhigh", "max"]


class MessagesBody(Body):
    """The body of `POST /v1/messages`, as far as this server knows it."""

    model: str = Field(min_length=1)
    max_tokens: PositiveInt
    messages: list[Message] = Field(min_length=1)
    stream: Literal[True]
    system: list[TextBlock] | None = Field(default=None, min_length=1)
    tools: list[Tool] | None = Field(default=None, min_length=1)
    tool_choice: ToolChoice | None = None
    output_config: OutputConfig | None = None

    @model_validator(mode="after")
    def _is_in_order(self) -> "MessagesBody":
        names = [tool.name for tool in self.tools or ()]
        if len(set(names)) < len(names):
            raise ValueError("tools: Tool names must be unique.")
        if self.messages[0].role != "user":
            raise ValueError('messages: first message must use the "user" role')
        if self.messages[-1].role != "user":
            raise ValueError("This model does not support assistant message prefill.")
        if any(isinstance(block, ToolUse) for block in self._blocks) and not names:
            raise ValueError("Requests which include `tool_use` or `tool_result` blocks must define tools")
        markable = (*self._blocks, *(self.system or ()), *(self.tools or ()))
        if sum(block.cache_control is not None for block in markable) > MAX_MARKS:
            raise ValueError(f"A maximum of {MAX_MARKS} blocks with cache_control may be provided.")
        self._need_results()
        return self

    @property
    def _blocks(self) -> list[TextBlock | ToolUse | ToolResult]:
        return [block for message in self.messages for block in message.blocks]

    def _need_results(self) -> None:
        """Each call is answered at once, before anything else is said, and nothing else is answered."""
        calls: set[str] = set()
        for message in self.messages:
            kinds = [block.type for block in message.blocks]
            results = [block.tool_use_id for block in message.blocks if isinstance(block, ToolResult)]
            if len(results) > len(set(results)) or set(results) - calls:
                raise ValueError("unexpected `tool_use_id` found in `tool_result` blocks")
            if calls - set(results):
                raise ValueError("`tool_use` ids were found without `tool_result` blocks immediately after")
            if results and kinds[: len(results)] != ["tool_result"] * len(results):
                raise ValueError("`tool_result` blocks must come first in the content")
            calls = {block.id for block in message.blocks if isinstance(block, ToolUse)}
            if calls and message.role != "assistant":
                raise ValueError("`tool_use` blocks can only be in `assistant` messages")

    def asked(self) -> Asked:
        """Say what was asked."""
        return Asked(self.model, tuple(self._entries()))

    def _entries(self) -> Iterator[Entry]:
        for tool in self.tools or ():
            words = json.dumps(tool.model_dump(exclude={"cache_control"}))
            yield Entry("tools", words, tool.cache_control is not None)
        for block in self.system or ():
            yield Entry("system", block.text, block.cache_control is not None)
        for message in self.messages:
            for block in message.blocks:
                yield _entry(message.role, block)


def _entry(role: str, block: TextBlock | ToolUse | ToolResult) -> Entry:
    is_marked = block.cache_control is not None
    match block:
        case TextBlock():
            return Entry(role, block.text, is_marked)
        case ToolUse():
            return Entry(role, f"{block.name} {json.dumps(block.input)}", is_marked)
        case ToolResult():
            return Entry("tool", f"(failed) {block.text}" if block.is_error else block.text, is_marked)
