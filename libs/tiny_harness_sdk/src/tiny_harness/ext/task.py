"""The `task` extension: what an A2A task lacks (spec/capability-tasks-and-plans)."""

from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from tiny_harness.ext.names import extension_uri, metadata_key
from tiny_harness.ext.plan import Plan

NAME: Final = "task"
URI: Final = extension_uri(NAME)
KEY: Final = metadata_key(NAME)

PARTICIPANT_ID_PATTERN: Final = r"^[A-Za-z0-9._:@-]{1,128}$"

AGENT_ID: Final = "tiny-harness"
"""The harness's own agent, assignee of its tasks. No caller may speak under this id."""

Role = Literal["admin", "reporter", "assignee", "watcher"]
ParticipantKind = Literal["human", "agent"]
Lifecycle = Literal["conversation", "delegated", "supervised"]


class Participant(BaseModel):
    """Somebody on a task, in one role. A person with two roles stands twice."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = Field(pattern=PARTICIPANT_ID_PATTERN)
    kind: ParticipantKind = "human"
    role: Role
    display_name: str | None = Field(default=None, max_length=200)


class Criterion(BaseModel):
    """One thing that must hold for the task to count as done."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    text: str = Field(min_length=1, max_length=2_000)
    met: bool = False


class TaskText(BaseModel):
    """The words that participants may set through a task envelope."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str | None = Field(default=None, min_length=1, max_length=200)
    type: str | None = Field(default=None, max_length=100)
    goal: str | None = Field(default=None, max_length=10_000)
    description: str | None = Field(default=None, max_length=50_000)
    acceptance_criteria: tuple[Criterion, ...] | None = Field(default=None, max_length=100)


class SubTask(BaseModel):
    """A child of a task, as its parent knows it."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    task_id: str
    agent: str | None = None
    """The remote agent that works on it; absent: this harness."""
    state: str
    """Its A2A state, such as `TASK_STATE_WORKING`."""
    sub_state: str | None = None


class TaskData(TaskText):
    """What stands under the extension's key in `Task.metadata`."""

    participants: tuple[Participant, ...] = ()
    parent_tasks: tuple[str, ...] = ()
    """Ids of the tasks that it is a part of."""
    sub_tasks: tuple[SubTask, ...] = ()
    plan: Plan | None = None
    """What the agent means to do, if it made a plan."""
    usage: dict[str, Any] | None = None
    lifecycle: Lifecycle = "conversation"
    """Server-controlled: how the task ends."""
    model: str | None = None
    """Server-controlled: the model chosen for this task, if one was."""
    reasoning_effort: str | None = None
    """Server-controlled: the effort chosen for this task, if one was."""


SERVER_CONTROLLED: Final = frozenset({"lifecycle", "model", "reasoning_effort"})
"""Fields that no envelope may carry, from anyone."""
