"""The event envelope: how a message carries a control or a task's data (decision-007 point 3).

An envelope is one data part of media type `MEDIA_TYPE`. A control is the only part of its message; task data may stand
beside text. The schema is closed: an unknown kind, action or field refuses the whole message.
"""

from typing import Annotated, Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from tiny_harness.errors import InvalidInput
from tiny_harness.ext.task import SERVER_CONTROLLED, Participant, TaskText

MEDIA_TYPE: Final = "application/vnd.tiny-harness.event+json"

Action = Literal["complete", "interrupt", "answer"]


class Control(BaseModel):
    """Asks the harness to do something to the task, without the model."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["control"]
    action: Action
    reason: str | None = Field(default=None, max_length=2_000)
    request_id: str | None = Field(default=None, max_length=256)
    """Of an `answer`: the question, as the status update that asked it names it."""
    value: str | None = Field(default=None, max_length=2_000)
    """Of an `answer`: what is said to it."""

    @model_validator(mode="after")
    def _answers_are_whole(self) -> Self:
        if (self.action == "answer") != (self.request_id is not None and self.value is not None):
            raise ValueError("an answer has request_id and value, and nothing else has")
        return self


class TaskPatch(TaskText):
    """New values for a task's data. Absent fields stay as they are."""

    participants: tuple[Participant, ...] | None = Field(default=None, max_length=100)
    """People to add, each with a role; who is on the task stays on it."""


class TaskEnvelope(BaseModel):
    """Sets a new task's data, or changes an existing one's."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["task"]
    payload: TaskPatch


_adapter: TypeAdapter[Control | TaskEnvelope] = TypeAdapter(
    Annotated[Control | TaskEnvelope, Field(discriminator="kind")]
)


def control_part(action: Action, reason: str | None = None) -> dict[str, Any]:
    """Build the data part of a control, as A2A JSON."""
    data: dict[str, Any] = {"kind": "control", "action": action}
    if reason:
        data["reason"] = reason
    return {"data": data, "mediaType": MEDIA_TYPE}


def answer_part(request_id: str, value: str) -> dict[str, Any]:
    """Build the data part of an answer to a question, as A2A JSON."""
    data = {"kind": "control", "action": "answer", "request_id": request_id, "value": value}
    return {"data": data, "mediaType": MEDIA_TYPE}


def decode(data: Any, where: str) -> Control | TaskEnvelope:
    """Read the data of an envelope part.

    Args:
        data: The part's `data`, as parsed JSON.
        where: Path of the part, for errors, such as `message.parts[0].data`.

    Raises:
        InvalidInput: `invalid_envelope`, naming the first field at fault.
    """
    payload = data.get("payload") if isinstance(data, dict) else None
    forbidden = sorted(SERVER_CONTROLLED & set(payload)) if isinstance(payload, dict) else []
    if forbidden:
        raise InvalidInput("invalid_envelope", f"{where}.payload.{forbidden[0]}", "is controlled by the server")
    try:
        return _adapter.validate_python(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        steps = [str(step) for step in first["loc"] if step not in ("control", "task")]
        raise InvalidInput("invalid_envelope", ".".join([where, *steps]), first["msg"]) from None
