"""What all APIs have in common when an answer is read from a stream."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict

from tiny_harness.errors import ModelError
from tiny_harness_engine.models.calls import parsed
from tiny_harness_engine.models.port import ModelReply, ModelRequest
from tiny_harness_engine.models.reason import GARBAGE, HALF, WORDLESS
from tiny_harness_engine.models.wire_names import WireNames


class Seen(BaseModel):
    """Base of the parts of a stream's events that we read: checked, since the SDKs build them unchecked."""

    model_config = ConfigDict(frozen=True, extra="ignore", from_attributes=True)


class Reading(Protocol):
    """An answer that is being read."""

    @property
    def is_complete(self) -> bool:
        """Whether the answer is whole; what may still follow is not needed."""
        ...

    def take(self, event: object) -> str:
        """Read an event and give the text that it adds.

        Raises:
            ModelError: The event says that the answer failed.
            ValueError: The event is garbage.
        """
        ...

    def reply(self) -> ModelReply:
        """Give the whole answer, once the stream has ended; tools by the names that the provider knows.

        Raises:
            ModelError: There is none.
        """
        ...


@dataclass(frozen=True, slots=True)
class Api:
    """One of the APIs that we speak."""

    path: str
    """The SDK's resource, such as `chat.completions`."""
    body: Callable[[ModelRequest, WireNames], dict[str, Any]]
    """Writes the body of a request: nothing that is not set is in it."""
    open_reading: Callable[[], Reading]
    """Begins to read an answer."""


def checked(reply: ModelReply, is_complete: bool, stopped_by: str, refusal: str = "") -> ModelReply:
    """Refuse half answers, refusals and wordless ones.

    Args:
        reply: What was read.
        is_complete: Whether the stream said that this is all.
        stopped_by: Why the answer was cut short, empty if it was not: asking again would end the same.
        refusal: The words with which the model refused, empty if it did not.
    """
    if not is_complete:
        raise ModelError(HALF, transient=True)
    if refusal:
        raise ModelError(f"it refused: {refusal}")
    if not all(call.name for call in reply.tool_calls):
        raise ModelError(GARBAGE, transient=True)
    if stopped_by and any(not call.arguments or parsed(call.arguments) is None for call in reply.tool_calls):
        raise ModelError(f"it was cut short in the middle of a tool call: {stopped_by}")
    if not reply.text.strip() and not reply.tool_calls:
        raise ModelError(f"it stopped before the first word: {stopped_by}" if stopped_by else WORDLESS, not stopped_by)
    return reply
