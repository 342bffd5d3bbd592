"""The `stream` extension: cursors, receipts, idempotency and token deltas (DESIGN: how things travel)."""

from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from tiny_harness.ext.names import extension_uri, metadata_key

NAME: Final = "stream"
URI: Final = extension_uri(NAME)
KEY: Final = metadata_key(NAME)

ReceivedAs = Literal["turn", "queued", "control", "command", "repeat"]


class Delta(BaseModel):
    """A piece of a reply that is still being written. Never stored, never numbered."""

    model_config = ConfigDict(frozen=True)

    message_id: str
    """The id that the finished message will have."""
    turn: int
    step: int
    attempt: int
    """Higher than before means: the model was asked again, drop the pieces of the old attempt."""
    index: int
    """Order of the pieces within one attempt, from 0."""
    text: str


class ToolUse(BaseModel):
    """A tool call of a step, as it ended."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    call_id: str
    name: str
    is_error: bool = False


class StreamData(BaseModel):
    """What stands under the extension's key in the metadata of a streamed event, or of a sent message.

    Numbers may arrive as doubles (`"seq": 2.0`): they are read leniently.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    seq: int | None = None
    """Number of the durable event within its task, from 1; the cursor to resume from."""
    turn: int | None = None
    """The turn that this event belongs to."""
    step: int | None = None
    """On the event of a step that asked for tools: its number within the turn."""
    read: tuple[str, ...] = ()
    """On the event of a step: ids of the messages that the model read in it for the first time."""
    tool_calls: tuple[ToolUse, ...] = ()
    """On the event of a step: what it asked for."""
    in_reply_to: tuple[str, ...] = ()
    """Ids of the messages whose turn ends with this event."""
    refused: tuple[str, ...] = ()
    """Ids of those among them that a policy refused; the event's message says why."""
    received: dict[str, Any] | None = None
    """The participant's message that this event records, as an A2A Message."""
    received_as: ReceivedAs | None = Field(default=None)
    """What became of it: it started a turn, waits for the running one, was a command or a control."""
    delta: Delta | None = None
    idempotency_key: str | None = Field(default=None, min_length=1, max_length=256)
    """On a first message: the same participant and key always mean the same task."""


def read(metadata: dict[str, Any] | None) -> StreamData:
    """Read the extension's data from a metadata object; absent data reads as empty.

    Raises:
        pydantic.ValidationError: The data is there and malformed.
    """
    return StreamData.model_validate((metadata or {}).get(KEY) or {})
