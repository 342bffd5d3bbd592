"""A model provider as the model step sees it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

from tiny_harness.settings import Effort


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool that the model wants to run."""

    call_id: str
    name: str
    """As the harness names it: a provider that allows fewer characters gets another one, and is translated back."""
    arguments: str
    """JSON, as the model wrote it."""


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool that the model may ask for."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    """JSON Schema of its arguments, an object's."""


@dataclass(frozen=True, slots=True)
class ModelMessage:
    """One message of the conversation, in the order in which the model is to read it."""

    role: Literal["user", "assistant", "tool"]
    """`tool`: the result of a call that the assistant message before it asked for."""
    text: str
    message_id: str = ""
    """Id of the A2A message it comes from."""
    tool_calls: tuple[ToolCall, ...] = ()
    """Of an assistant's message: what it asked for."""
    call_id: str = ""
    """Of a tool's message: the call that it answers."""
    is_error: bool = False
    """Of a tool's message: the call failed."""


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """What one step asks of the model."""

    turn: int
    step: int
    attempt: int
    """From 1; higher when the same step is asked again."""
    messages: Sequence[ModelMessage]
    """The window, oldest first; ends with what is to be answered."""
    effort: Effort | None = None
    model: str | None = None
    """The model that the task chose; `None`: the configured one."""
    system: str = ""
    """What stands before the conversation; the same from call to call, so that providers may cache it."""
    tools: Sequence[ToolSpec] = ()


@dataclass(frozen=True, slots=True)
class ModelUsage:
    """Tokens of one call, as the provider counts them."""

    input_tokens: int = 0
    """All of the input, cached tokens included."""
    output_tokens: int = 0
    cached_tokens: int = 0
    """Those of the input that the provider read from its cache."""


@dataclass(frozen=True, slots=True)
class ModelReply:
    """A whole answer."""

    text: str
    tool_calls: Sequence[ToolCall] = ()
    usage: ModelUsage = field(default_factory=ModelUsage)


@runtime_checkable
class KnowsItsTools(Protocol):
    """A provider that can say whether it looks at the tools that it is offered: if not, none are waited for."""

    @property
    def looks_at_tools(self) -> bool:
        """Whether it does."""
        ...


def looks_at_tools(provider: object) -> bool:
    """Say whether a provider looks at the tools that it is offered; one that does not say does."""
    return not isinstance(provider, KnowsItsTools) or provider.looks_at_tools


class ModelProvider(Protocol):
    """Somebody who answers."""

    async def reply(self, request: ModelRequest, on_text: Callable[[str], None]) -> ModelReply:
        """Answer a request.

        Args:
            request: The conversation so far.
            on_text: Called with each piece of text as it arrives; the pieces make up the reply's text.

        Raises:
            ModelError: The provider failed; `transient` says whether another attempt can help.
        """
        ...

    async def close(self) -> None:
        """Close connections."""
        ...
