"""What a command's body answers: words to show, and effects, the only way to change a task."""

from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from tiny_harness.ext.task import PARTICIPANT_ID_PATTERN, ParticipantKind, Role

MAX_REPLY_CHARS: Final = 32_000
MAX_EFFECTS: Final = 10
MAX_GOAL_CHARS: Final = 10_000

CommandOutcome = Literal["done", "refused", "failed"]


class _Closed(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class SetModel(_Closed):
    """Use another model for the task's later model calls."""

    kind: Literal["set_model"] = "set_model"
    model: str


class SetEffort(_Closed):
    """Let the model think harder, or less hard, from now on."""

    kind: Literal["set_effort"] = "set_effort"
    effort: str


class CreateSubTask(_Closed):
    """Start a parked conversation as a child of the task. Its id is the context's `new_task_id`: one per command."""

    kind: Literal["create_sub_task"] = "create_sub_task"
    goal: str = Field(min_length=1, max_length=MAX_GOAL_CHARS)


class AddParticipant(_Closed):
    """Put somebody on the task."""

    kind: Literal["add_participant"] = "add_participant"
    id: str = Field(pattern=PARTICIPANT_ID_PATTERN)
    role: Role
    participant_kind: ParticipantKind = "human"


Effect = Annotated[SetModel | SetEffort | CreateSubTask | AddParticipant, Field(discriminator="kind")]


class CommandResult(_Closed):
    """A body's answer. The engine validates each effect as if a built-in had asked for it."""

    reply: str = Field(min_length=1, max_length=MAX_REPLY_CHARS)
    """Shown as a message on the task; from a remote body, untrusted text."""
    data: dict[str, Any] | None = None
    """The same for programs: a data part beside the text."""
    effects: tuple[Effect, ...] = Field(default=(), max_length=MAX_EFFECTS)
    outcome: Literal["done", "refused"] = "done"
    """`refused`: the body understood and said no; a refusal has no effects."""
