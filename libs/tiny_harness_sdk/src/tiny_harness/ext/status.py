"""The `status` extension: why a task is INPUT_REQUIRED (R4, decision-007 point 2)."""

from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from tiny_harness.ext.names import extension_uri, metadata_key

NAME: Final = "status"
URI: Final = extension_uri(NAME)
KEY: Final = metadata_key(NAME)


class StatusData(BaseModel):
    """What stands under the extension's key in `Task.metadata` and in an INPUT_REQUIRED status update's metadata.

    Absent once the task leaves INPUT_REQUIRED.
    """

    model_config = ConfigDict(frozen=True, extra="allow")

    sub_state: str = Field(examples=["awaiting-next-message", "awaiting-answer"])
    """Why the task waits. An open set: treat an unknown value as plain INPUT_REQUIRED."""
    request_id: str | None = None
    """What an `answer` names, when somebody in particular must say something."""
    choices: tuple[str, ...] = ()
    """What may be answered, if that is a choice."""
