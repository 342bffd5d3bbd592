"""Tasks and messages as a person or a script sees them, free of the protocol's shapes."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from tiny_harness.ext.task import Participant
from tiny_harness.states import TaskState


@dataclass(frozen=True, slots=True)
class MessageView:
    """One message of a conversation."""

    message_id: str
    role: Literal["user", "agent"]
    text: str
    """All its text parts, joined by blank lines; empty for a message without words."""


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
