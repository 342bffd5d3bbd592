"""Tasks and messages as a person or a script sees them, free of the protocol's shapes."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal

from tiny_harness.contracts import Usage
from tiny_harness.ext.plan import Plan
from tiny_harness.ext.supervision import SupervisionData
from tiny_harness.ext.task import Participant, SubTask
from tiny_harness.states import AWAITING_ANSWER, AWAITING_APPROVAL, AWAITING_BUDGET, TaskState

ASKING: Final = frozenset({AWAITING_ANSWER, AWAITING_APPROVAL, AWAITING_BUDGET})
"""Sub-states in which somebody in particular must say something."""


@dataclass(frozen=True, slots=True)
class CommandAnswer:
    """What became of a slash command: it was the harness that answered, not the model."""

    name: str
    outcome: Literal["done", "refused", "failed"]
    data: dict[str, Any] | None = None
    """The same as the message's text for programs, if the command answers so."""


@dataclass(frozen=True, slots=True)
class MessageView:
    """One message of a conversation."""

    message_id: str
    role: Literal["user", "agent", "note"]
    """`note`: the harness tells the agent something, such as a sub-task's brief or how one ended."""
    text: str
    """All its text parts, joined by blank lines; empty for a message without words."""
    command: CommandAnswer | None = None
    """Set on the reply to a command."""


@dataclass(frozen=True, slots=True)
class Question:
    """What a task waits to be told."""

    sub_state: str
    """What kind of question it is, such as `awaiting-approval`."""
    words: str = ""
    """The question itself; empty if the server does not say it."""
    request_id: str | None = None
    """What `HarnessClient.answer` names it by; `None`: a message answers it."""
    choices: tuple[str, ...] = ()
    """What may be answered; empty: anything."""


@dataclass(frozen=True, slots=True)
class TaskView:
    """A task as it is now."""

    task_id: str
    context_id: str
    state: TaskState
    sub_state: str | None = None
    name: str = ""
    """What a list shows for it; empty if the server names no tasks."""
    updated_at: datetime | None = None
    messages: tuple[MessageView, ...] = ()
    """Oldest first; only those that the server sent."""
    participants: tuple[Participant, ...] = ()
    parent_tasks: tuple[str, ...] = ()
    """Ids of the tasks that it is a part of."""
    sub_tasks: tuple[SubTask, ...] = ()
    model: str | None = None
    """The model chosen for the task, if one was."""
    effort: str | None = None
    """How hard the model thinks, if that was chosen for the task."""
    plan: Plan | None = None
    """What the agent means to do, if it made a plan."""
    usage: Usage | None = None
    """What the task has used of models, as far as it was told: replies do not tell it, `HarnessClient.task` does."""
    question: Question | None = None
    """What the task waits to be told, if it does."""
    supervision: SupervisionData | None = None
    """Of a supervised task: how it stands with its worker."""


@dataclass(frozen=True, slots=True)
class TaskList:
    """A page of tasks, newest change first."""

    tasks: tuple[TaskView, ...]
    after: str | None
    """Where the next page starts; `None` on the last one."""
    total: int
    """How many there are over all pages."""

    def __iter__(self) -> Iterator[TaskView]:
        return iter(self.tasks)

    def __len__(self) -> int:
        return len(self.tasks)
