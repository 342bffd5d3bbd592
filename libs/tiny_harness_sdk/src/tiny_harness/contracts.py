"""The names and models by which gateway and engine meet: the task workflow's calls, and what they carry.

Everything here is small: message content crosses as opaque A2A JSON text, everything larger by reference to the store.
"""

from decimal import Decimal
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict

from tiny_harness.ext.plan import Plan
from tiny_harness.ext.stream import ReceivedAs
from tiny_harness.ext.task import Lifecycle, Participant, ParticipantKind
from tiny_harness.states import TaskState

TASK_WORKFLOW: Final = "TaskWorkflow"
DELIVER: Final = "deliver"
CANCEL: Final = "cancel"
RECONCILE: Final = "reconcile"
SNAPSHOT: Final = "snapshot"
CHILD_CHANGED: Final = "child_changed"
NOTICE: Final = "notice"
REMOTE_WORKFLOW: Final = "RemoteTaskWorkflow"
SUPERVISOR_WORKFLOW: Final = "SupervisorWorkflow"
HEARTBEAT_WORKFLOW: Final = "HeartbeatWorkflow"
HEARTBEAT: Final = "heartbeat"
"""Names in the store what the last heartbeat saw."""


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
    worker: str | None = None
    """Of a supervised task: who works on it."""
    worker_kind: ParticipantKind = "agent"


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
    is_answered: bool = False
    """Whether its reply is in the store already: a command that ran at once."""


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
    command: str = ""
    """The command that it calls, if it is one."""


class ChildChanged(Model):
    """The argument of the signal `child_changed`: a sub-task is in another state now. Sent at least once."""

    task_id: str
    """The child."""
    seq: int
    """The child's event that says so: tells an old change from a new one."""
    state: TaskState
    sub_state: str | None = None
    words: str = ""
    """When it is news: the child's last words, cut to what a signal can carry."""
    remote_id: str | None = None
    """Of a remote child: its own id, at its agent."""
    is_news: bool = False
    """Whether the model is to be told although it has not ended: a remote child's turn is over."""


class Child(Model):
    """A sub-task, as its parent knows it."""

    task_id: str
    seq: int = 0
    """The child's last event that its parent has heard of."""
    state: TaskState
    sub_state: str | None = None
    agent: str | None = None
    """The configured name of the remote agent that works on it; `None`: this harness."""
    remote_id: str | None = None
    """Its own id at that agent, once it is known. Only ever shown: a stranger chose it."""
    origin: tuple[int, int, int] | None = None
    """Of a remote child: the (turn, step, call) that asked for it; its brief is kept there."""


class Usage(Model):
    """What a task has used of its models, its own calls only."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    """Those of the input that a provider's cache held."""
    cost: Decimal | None = None
    """Money, of the calls whose model has a price; `None`: of none."""
    unpriced: tuple[str, ...] = ()
    """Models that were asked and have no price: what they cost is in no sum."""

    def plus(self, other: "Usage") -> "Usage":
        """Add up."""
        return Usage(
            calls=self.calls + other.calls,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            cost=other.cost if self.cost is None else self.cost + (other.cost or 0),
            unpriced=tuple(sorted({*self.unpriced, *other.unpriced})),
        )

    def shown(self) -> dict[str, Any]:
        """Show it, as JSON: money as a decimal number in text, never as zero where it is not known."""
        data = self.model_dump(exclude={"cost", "unpriced"})
        if self.cost is not None:
            data["cost"] = f"{self.cost:f}"
        return {**data, "unpriced": list(self.unpriced)} if self.unpriced else data


class Question(Model):
    """What a paused turn waits to be told by somebody."""

    request_id: str
    """Names it to whoever answers."""
    kind: Literal["approval", "budget"]
    call: int = 0
    """Of an approval: the place of the tool call within its step."""


class Approval(Model):
    """What somebody said of a tool call of the current step."""

    call: int
    allowed: bool
    reason: str = ""


class Supervision(Model):
    """How a supervised task stands with its worker (adr-042)."""

    worker: str
    position: int | None = None
    """Its place in the worker's queue, from 1, while it waits there."""
    activity: int = 1
    """Counts what the worker did and what people wrote: each starts the watchdog's ladder anew."""
    busy_minutes: int = 0
    """For how long, from the last activity, the worker says that it runs something."""
    reminders: int = 0
    """Since the last activity."""
    warnings: int = 0
    """That it will expire, since the last activity."""
    is_stalled: bool = False
    """Whether reminders did not help."""
    is_stopped: bool = False
    """Whether its people stopped the worker, and nobody has written since."""
    is_expired: bool = False
    """Whether it was ended because nothing happened for too long."""
    last_line: str = ""
    """What the worker said at last, cut to a line."""


class TaskSnapshot(Model):
    """All that a run needs to know of its task. Holds no messages; replaced with every commit."""

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
    read_count: int = 0
    """How many of them earlier steps of the turn have read."""
    question: Question | None = None
    """Set while the turn is paused: it goes on when somebody has answered."""
    approvals: tuple[Approval, ...] = ()
    """What was said of the current step's tool calls."""
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
    plan: Plan | None = None
    """What the agent means to do. The one thing here that holds words: the workflow changes it without I/O."""
    skills: tuple[str, ...] = ()
    """Skills that the agent has loaded."""
    usage: Usage = Usage()
    budgets: int = 0
    """How many more budgets people have granted."""
    supervision: Supervision | None = None
    """Of a supervised task."""

    @property
    def unresolved(self) -> tuple[str, ...]:
        """Ids of the sub-tasks that are open, as far as the task has heard (R3.5)."""
        return tuple(child.task_id for child in self.children if not child.state.is_terminal)


def workflow_id(task_id: str) -> str:
    """Name a task's workflow."""
    return f"task:{task_id}"


def remote_workflow_id(parent: str, child: str) -> str:
    """Name the workflow that stands in for a remote sub-task."""
    return f"remote:{parent}:{child}"


def heartbeat_id(queue: str) -> str:
    """Name the heartbeat's schedule, and its workflows, of the deployment that meets at a task queue."""
    return f"heartbeat:{queue}"


def supervisor_workflow_id(worker: str) -> str:
    """Name the workflow that supervises a worker."""
    return f"worker:{worker}"


def shard(task_id: str) -> int:
    """Say where a task lives: the only way to a store, a channel or a namespace. One shard today."""
    del task_id
    return 0
