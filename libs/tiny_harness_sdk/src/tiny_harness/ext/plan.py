"""A task's plan, as the `task` extension shows it (spec/capability-tasks-and-plans)."""

from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

MAX_STEPS: Final = 50
"""A plan travels in every Task and stands in every window: it stays short."""
MAX_NAME_CHARS: Final = 120
MAX_DESCRIPTION_CHARS: Final = 1_000
MAX_OUTPUT_CHARS: Final = 2_000
MAX_LINKED_TASKS: Final = 200
STEP_ID_PATTERN: Final = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"

StepStatus = Literal["pending", "active", "done"]
StepId = Annotated[str, StringConstraints(pattern=STEP_ID_PATTERN)]


class _Document(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class PlanStep(_Document):
    """One step of a plan."""

    id: StepId
    name: str = Field(min_length=1, max_length=MAX_NAME_CHARS)
    description: str = Field(default="", max_length=MAX_DESCRIPTION_CHARS)
    depends_on: tuple[StepId, ...] = Field(default=(), max_length=MAX_STEPS)
    """Ids of the steps that must be done before it."""
    status: StepStatus = "pending"
    """`active`: the step that is worked on; a plan has one at most."""
    output: str | None = Field(default=None, max_length=MAX_OUTPUT_CHARS)
    """What came of it, once it is done."""
    linked_tasks: tuple[str, ...] = Field(default=(), max_length=MAX_LINKED_TASKS)
    """Ids of the sub-tasks that were started for it."""


class Plan(_Document):
    """Steps that depend on each other, without a cycle, in the order in which they were planned."""

    steps: tuple[PlanStep, ...] = Field(min_length=1, max_length=MAX_STEPS)
