"""What the agent's intrinsic tools do to its task: values that the workflow applies, without I/O (DESIGN: agent core).

The fields of an act are the arguments of its tool; the published schemas are made from them. Whether an act may be done
now, to this task, by this agent, is judged when it is applied.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator
from pydantic.json_schema import SkipJsonSchema

from tiny_harness.envelope import MAX_SUMMARY_CHARS
from tiny_harness.ext.plan import MAX_OUTPUT_CHARS, MAX_STEPS, STEP_ID_PATTERN
from tiny_harness.ext.task import PARTICIPANT_ID_PATTERN
from tiny_harness_engine.core.plan import PlannedStep

Goal = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=10_000)]
Description = Annotated[str, StringConstraints(max_length=20_000)]
CriterionText = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=1_000)]
Criteria = Annotated[tuple[CriterionText, ...], Field(max_length=20)]
ParticipantId = Annotated[str, StringConstraints(pattern=PARTICIPANT_ID_PATTERN)]
AgentName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
SkillName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9-]{0,63}$")]
Summary = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_SUMMARY_CHARS)]
Choice = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]


class _Act(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class CreatePlan(_Act):
    """Make the task's plan, or replace it."""

    kind: SkipJsonSchema[Literal["create_plan"]] = "create_plan"
    steps: tuple[PlannedStep, ...] = Field(
        min_length=1,
        max_length=MAX_STEPS,
        description="The steps, in the order in which they are to be done. They may not wait for each other in a ring.",
    )


class CompleteStep(_Act):
    """Mark a step of the plan as done."""

    kind: SkipJsonSchema[Literal["complete_step"]] = "complete_step"
    output: str = Field(
        max_length=MAX_OUTPUT_CHARS, description="What came of the step: results and decisions that later steps need."
    )
    step_id: Annotated[str, StringConstraints(pattern=STEP_ID_PATTERN)] | None = Field(
        default=None, description="The step that is done; leave it out for the active one."
    )


class SpawnSubtask(_Act):
    """Give a piece of the work to an agent, as a sub-task that ends with its result."""

    kind: SkipJsonSchema[Literal["spawn_subtask"]] = "spawn_subtask"
    agent: AgentName | None = Field(
        default=None, description="The configured remote agent that is to do it; leave it out for this harness itself."
    )
    goal: Goal = Field(description="What the sub-task is to achieve, in one or two sentences.")
    description: Description = Field(
        default="",
        description="All that the agent needs to know: it does not see this conversation.",
    )
    acceptance_criteria: Criteria = Field(
        default=(), description="What must hold for the sub-task to count as done, each checkable by itself."
    )

    @field_validator("agent", mode="before")
    @classmethod
    def _self_is_this_harness(cls, agent: object) -> object:
        return None if agent in ("", "self") else agent


class AskParticipant(_Act):
    """Ask a person, and wait for the answer."""

    kind: SkipJsonSchema[Literal["ask_participant"]] = "ask_participant"
    question: Goal = Field(description="The question, with what one needs to know to answer it.")
    choices: Annotated[tuple[Choice, ...], Field(max_length=20)] = Field(
        default=(), description="Answers to choose from; leave it out if any words will do."
    )
    participant: ParticipantId | None = Field(
        default=None,
        description="Id of the participant of this task that is asked; leave it out to ask whoever is there.",
    )


class CreateTaskForParticipant(_Act):
    """Give a piece of the work to a participant, as a task of their own."""

    kind: SkipJsonSchema[Literal["create_task_for_participant"]] = "create_task_for_participant"
    participant: ParticipantId = Field(description="Id of the participant who is to do it.")
    goal: Goal = Field(description="What they are asked to achieve, in one or two sentences.")
    description: Description = Field(
        default="", description="All that they need to know: they may not see this conversation."
    )
    acceptance_criteria: Criteria = Field(
        default=(), description="What must hold for the task to count as done, each checkable by itself."
    )


class SetParticipantRole(_Act):
    """Propose who somebody is on this task."""

    kind: SkipJsonSchema[Literal["set_participant_role"]] = "set_participant_role"
    participant: ParticipantId = Field(description="Id of the participant.")
    role: Literal["reporter", "assignee", "watcher"] = Field(
        description="reporter: the task is done for them; assignee: they work on it; watcher: they only read."
    )
    """Never `admin`: no model grants that (DESIGN: rights that no text can give)."""


class TaskUpdate(_Act):
    """Say how a supervised task stands: the agent is its worker (adr-042)."""

    kind: SkipJsonSchema[Literal["task_update"]] = "task_update"
    status: Literal["done", "blocked", "failed"] = Field(
        description="done and failed end the task; blocked parks it until somebody has answered."
    )
    summary: Summary = Field(description="done: the result. blocked: what you need, as a question. failed: why.")


class LoadSkill(_Act):
    """Read a skill's instructions."""

    kind: SkipJsonSchema[Literal["load_skill"]] = "load_skill"
    name: SkillName = Field(description="Name of the skill, as the list of skills has it.")


class ReadSkillFile(_Act):
    """Read a file that belongs to a skill."""

    kind: SkipJsonSchema[Literal["read_skill_file"]] = "read_skill_file"
    name: SkillName = Field(description="Name of the skill.")
    path: str = Field(
        min_length=1,
        max_length=500,
        description="The file, relative to the skill's folder, such as `references/fees.md`.",
    )


Act = Annotated[
    CreatePlan
    | CompleteStep
    | SpawnSubtask
    | AskParticipant
    | CreateTaskForParticipant
    | SetParticipantRole
    | TaskUpdate
    | LoadSkill
    | ReadSkillFile,
    Field(discriminator="kind"),
]
