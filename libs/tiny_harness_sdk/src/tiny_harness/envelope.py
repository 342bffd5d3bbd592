"""The event envelope: how a message carries a control or a task's data (decision-007 point 3).

An envelope is one data part of media type `MEDIA_TYPE`. A control is the only part of its message; task data may stand
beside text. The schema is closed: an unknown kind, action or field refuses the whole message.
"""

from typing import Annotated, Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from tiny_harness.errors import InvalidInput
from tiny_harness.ext.task import PARTICIPANT_ID_PATTERN, SERVER_CONTROLLED, Participant, TaskText

MEDIA_TYPE: Final = "application/vnd.tiny-harness.event+json"

Action = Literal["complete", "interrupt", "answer", "acknowledge"]

MAX_SUMMARY_CHARS: Final = 20_000
MAX_RUNNING_MINUTES: Final = 240


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


class WorkerUpdate(BaseModel):
    """How a worker says that its supervised task stands: nothing else ends that, but its people (adr-042)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["task_update"] = "task_update"
    status: Literal["done", "blocked", "failed", "running"]
    """`running`: nothing has changed, but the worker is at it."""
    summary: str = Field(default="", max_length=MAX_SUMMARY_CHARS)
    """The result, what is needed, or why not; of `running` what it does, if it likes."""
    minutes: int = Field(default=0, ge=0, le=MAX_RUNNING_MINUTES)
    """Of `running`: for how long something runs that will say nothing; nobody is reminded meanwhile."""

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if self.status != "running" and not self.summary.strip():
            raise ValueError("summary says how it ended, or what is needed")
        if self.status != "running" and self.minutes:
            raise ValueError("minutes belong to the status running")
        return self


class TaskPatch(TaskText):
    """New values for a task's data. Absent fields stay as they are."""

    participants: tuple[Participant, ...] | None = Field(default=None, max_length=100)
    """People to add, each with a role; who is on the task stays on it."""
    worker: str | None = Field(default=None, pattern=PARTICIPANT_ID_PATTERN)
    """Of a new task: the participant that works on it, which makes it a supervised one."""


class TaskEnvelope(BaseModel):
    """Sets a new task's data, or changes an existing one's."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["task"]
    payload: TaskPatch


Envelope = Control | TaskEnvelope | WorkerUpdate

_adapter: TypeAdapter[Envelope] = TypeAdapter(Annotated[Envelope, Field(discriminator="kind")])


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


def update_part(update: WorkerUpdate) -> dict[str, Any]:
    """Build the data part of a worker's update, as A2A JSON."""
    return {"data": update.model_dump(exclude_defaults=True) | {"kind": update.kind}, "mediaType": MEDIA_TYPE}


def decode(data: Any, where: str) -> Envelope:
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
        steps = [str(step) for step in first["loc"] if step not in ("control", "task", "task_update")]
        raise InvalidInput("invalid_envelope", ".".join([where, *steps]), first["msg"]) from None
