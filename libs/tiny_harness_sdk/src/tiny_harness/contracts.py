"""The names and models by which gateway and engine meet: the task workflow's calls, and what they carry.

Everything here is small: message content crosses as opaque A2A JSON text, everything larger by reference to the store.
"""

from typing import Final

from pydantic import BaseModel, ConfigDict

from tiny_harness.ext.stream import ReceivedAs
from tiny_harness.ext.task import Lifecycle, Participant, ParticipantKind
from tiny_harness.states import TaskState

TASK_WORKFLOW: Final = "TaskWorkflow"
DELIVER: Final = "deliver"
CANCEL: Final = "cancel"
RECONCILE: Final = "reconcile"
SNAPSHOT: Final = "snapshot"
CHILD_CHANGED: Final = "child_changed"


class Model(BaseModel):
    """Base of everything that crosses: frozen, and unknown fields of a newer peer are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Sender(Model):
    """An authenticated participant."""

    id: str
    kind: ParticipantKind = "human"


class NewTask(Model):
    """What a first message's task starts as."""

    context_id: str
    lifecycle: Lifecycle = "conversation"


class Delivery(Model):
    """One message on its way to a task: the argument of the update `deliver`."""

    sender: Sender
    message: str
    """The A2A Message as JSON, with `taskId` and `contextId` filled in."""
    new_task: NewTask | None = None
    """Set when the message starts the task."""


class Receipt(Model):
    """The answer of `deliver`: the message is in the store."""

    seq: int
    """Number of the event that records it."""
    received_as: ReceivedAs
    turn: int | None = None
    """The turn that reads it, if that is known already."""


class Cancel(Model):
    """The argument of the signal `cancel`."""

    requested_by: str


class StartTask(Model):
    """The argument of `TaskWorkflow`. A run rebuilds all else from the store."""

    task_id: str
    first: Delivery | None = None
    """The first message, so that a start whose update was lost still answers."""


class Input(Model):
    """A participant's message, by reference."""

    seq: int
    message_id: str
    sender: Sender | None = None


class ChildChanged(Model):
    """The argument of the signal `child_changed`: a sub-task is in another state now. Sent at least once."""

    task_id: str
    """The child."""
    seq: int
    """The child's event that says so: tells an old change from a new one."""
    state: TaskState
    sub_state: str | None = None


class Child(Model):
    """A sub-task, as its parent knows it."""

    task_id: str
    seq: int = 0
    """The child's last event that its parent has heard of."""
    state: TaskState
    sub_state: str | None = None


class Usage(Model):
    """What a task has used of its models, its own calls only."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    def plus(self, other: "Usage") -> "Usage":
        """Add up."""
        return Usage(
            calls=self.calls + other.calls,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
        )


class TaskSnapshot(Model):
    """All that a run needs to know of its task. Holds no text; replaced with every commit."""

    task_id: str
    context_id: str
    lifecycle: Lifecycle = "conversation"
    state: TaskState
    sub_state: str | None = None
    head: int = 0
    """Number of the last event."""
    turn: int = 0
    """Number of the current or last turn, from 1."""
    step: int = 0
    """Number of the current step within the turn, from 1; 0 while no turn runs."""
    reading: tuple[Input, ...] = ()
    """The messages that the current turn answers."""
    mailbox: tuple[Input, ...] = ()
    """Messages that wait for the running turn, in order."""
    participants: tuple[Participant, ...] = ()
    commands: tuple[Input, ...] = ()
    """Commands that run, or are to run, in activities of their own."""
    model: str | None = None
    """The model chosen for the task, if one was."""
    effort: str | None = None
    """The effort chosen for the task, if one was."""
    parent: str | None = None
    """Id of the task that it is a part of."""
    depth: int = 0
    """How many tasks are above it."""
    children: tuple[Child, ...] = ()
    usage: Usage = Usage()

    @property
    def unresolved(self) -> tuple[str, ...]:
        """Ids of the sub-tasks that are open, as far as the task has heard (R3.5)."""
        return tuple(child.task_id for child in self.children if not child.state.is_terminal)


def workflow_id(task_id: str) -> str:
    """Name a task's workflow."""
    return f"task:{task_id}"


def shard(task_id: str) -> int:
    """Say where a task lives: the only way to a store, a channel or a namespace. One shard today."""
    del task_id
    return 0
