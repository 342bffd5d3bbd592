"""What the two APIs of OpenAI have in common when an answer is read from a stream."""

from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict

from tiny_harness.errors import ModelError
from tiny_harness.settings import OpenAISettings
from tiny_harness_engine.models.port import ModelReply, ModelRequest
from tiny_harness_engine.models.reason import HALF, WORDLESS

PASSING_CODES = frozenset({"server_error", "rate_limit_exceeded", "vector_store_timeout", ""})
"""Codes of an error inside a stream that another attempt can help against; the empty one: the server gave none."""


class Seen(BaseModel):
    """Base of the parts of a stream's events that we read: checked, since the SDK builds them unchecked."""

    model_config = ConfigDict(frozen=True, extra="ignore", from_attributes=True)


class StreamError(Seen):
    """An error that came inside a stream."""

    code: str | None = None
    message: str | None = None

    def as_model_error(self) -> ModelError:
        """Say it in our words."""
        return ModelError(self.message or self.code or "it gave no reason", (self.code or "") in PASSING_CODES)


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
        """Give the whole answer, once the stream has ended.

        Raises:
            ModelError: There is none.
        """
        ...


class Api(Protocol):
    """One of the APIs, as a module."""

    PATH: str
    """The SDK's resource, such as `chat.completions`."""

    def body(self, settings: OpenAISettings, request: ModelRequest) -> dict[str, Any]:
        """Write the body of a request: nothing that is not set is in it."""
        ...

    def open_reading(self) -> Reading:
        """Begin to read an answer."""
        ...


def checked(reply: ModelReply, is_complete: bool, stopped_by: str) -> ModelReply:
    """Refuse half answers and wordless ones.

    Args:
        reply: What was read.
        is_complete: Whether the stream said that this is all.
        stopped_by: Why the answer was cut short, empty if it was not: asking again would end the same.
    """
    if not is_complete:
        raise ModelError(HALF, transient=True)
    if not reply.text.strip() and not reply.tool_calls:
        raise ModelError(f"it stopped before the first word: {stopped_by}" if stopped_by else WORDLESS, not stopped_by)
    return reply
