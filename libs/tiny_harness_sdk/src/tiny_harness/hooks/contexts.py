"""What executors are shown: one typed context per operation, a flat JSON document on the wire (R6a.1).

A context never holds what its reader has no use for. Everything in it that a participant or a model wrote is data.
"""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from tiny_harness.effects import CommandResult
from tiny_harness.ext.commands import CommandOffer
from tiny_harness.ext.task import Lifecycle, Participant, ParticipantKind, Role

Phase = Literal["pre", "in", "post"]


class _Document(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class SubTaskRef(_Document):
    """A child of the task."""

    task_id: str
    state: str
    """Its A2A state, such as `TASK_STATE_WORKING`."""
    sub_state: str | None = None


class TaskRef(_Document):
    """The task that an operation belongs to, as it is at that moment."""

    task_id: str
    context_id: str
    name: str | None = None
    goal: str | None = None
    state: str
    """Its A2A state, such as `TASK_STATE_INPUT_REQUIRED`."""
    sub_state: str | None = None
    lifecycle: Lifecycle = "conversation"
    model: str | None = None
    """The model chosen for it, if one was."""
    effort: str | None = None
    """The effort chosen for it, if one was."""
    parent_tasks: tuple[str, ...] = ()
    sub_tasks: tuple[SubTaskRef, ...] = ()
    plan_done: int = 0
    """Steps of the plan that are done."""
    plan_total: int = 0
    usage: dict[str, Any] = Field(default_factory=dict)
    """Model calls and tokens so far."""
    supervision: dict[str, Any] | None = None
    """Of a supervised task: how it stands with its worker (the `supervision` extension)."""


class SenderRef(_Document):
    """Whoever asked for the operation."""

    id: str
    kind: ParticipantKind = "human"
    role: Role | None = None
    """The strongest role on the task; `None` before there is one."""


class HookContext(_Document):
    """What every context has."""

    operation: str
    phase: Phase
    task: TaskRef
    participants: tuple[Participant, ...] = ()
    sender: SenderRef | None = None
    correlation_id: str
    """Names the operation in our logs, and in what its participants are told of a failure."""
    delivery_id: str = ""
    """Names this call; the same on a retry of it."""
    attempt: int = 1


class RequestContext(HookContext):
    """`request.received`: a participant's words, before the harness takes them. Never a command or a control."""

    message_id: str
    text: str


class HarnessFacts(_Document):
    """What a command may tell people about the harness."""

    models: tuple[str, ...] = ()
    """The models that may be selected."""
    default_model: str | None = None
    efforts: tuple[str, ...] = ("low", "medium", "high")
    default_effort: str | None = None
    commands: tuple[CommandOffer, ...] = ()
    hook_health: tuple[dict[str, Any], ...] | None = None
    """State of each hook; only for admins, and for the reporter of a task on a harness of their own."""
    tool_health: tuple[dict[str, Any], ...] | None = None
    """State of each tool server; for the same people."""


class CommandContext(HookContext):
    """`command.invoked`: a registered command and its arguments."""

    command: str
    arguments: str
    """The text behind the name. Untrusted: a value for the command's own validation and nothing else (abuse case 5)."""
    message_id: str = ""
    new_task_id: str = ""
    """The id that a sub-task created by this command gets."""
    harness: HarnessFacts = HarnessFacts()
    result: CommandResult | None = None


class TaskCreatedContext(HookContext):
    """`task.created`: a task that is about to start."""

    text: str = ""
    """The words that start it."""


class CompletionDecision(_Document):
    """Whether a task may be completed."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    allowed: bool
    reason: str | None = None


class CompletionContext(HookContext):
    """`task.complete`: somebody wants the task to be COMPLETED."""

    requested_by: str
    reason: str | None = None
    unresolved: tuple[str, ...] = ()
    """Ids of the sub-tasks that are open."""
    result: CompletionDecision | None = None


class WindowCall(_Document):
    """A tool that a model asked for."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    call_id: str
    name: str
    arguments: str
    """JSON, as the model wrote it."""


class WindowMessage(_Document):
    """One message of what a model is shown."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    role: Literal["user", "assistant", "tool"]
    """`tool`: the result of a call that the assistant message before it asked for."""
    text: str
    message_id: str = ""
    tool_calls: tuple[WindowCall, ...] = ()
    """Of an assistant's message: what it asked for."""
    call_id: str = ""
    """Of a tool's message: the call that it answers."""
    is_error: bool = False
    """Of a tool's message: the call failed."""


class Window(_Document):
    """What a model is shown, oldest first."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    messages: tuple[WindowMessage, ...]


class WindowContext(HookContext):
    """`context.created`: the window is put together."""

    turn: int
    step: int
    result: Window | None = None


class ModelOutput(_Document):
    """What a model answered."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    text: str
    tool_calls: tuple[WindowCall, ...] = ()
    """What it asks for before it goes on."""
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0


class ModelContext(HookContext):
    """`llm.invoked`: a model is asked."""

    turn: int
    step: int
    model: str | None = None
    effort: str | None = None
    messages: tuple[WindowMessage, ...]
    result: ModelOutput | None = None


class CompactionDue(_Document):
    """Whether something has to be left out."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    due: bool


class CompactionTriggerContext(HookContext):
    """`compaction.trigger`: a window is measured before a model is asked."""

    tokens: int
    """Of the whole window, as far as they are known."""
    window_tokens: int
    """What the model takes."""
    result: CompactionDue | None = None


class WindowEntry(_Document):
    """A message of a window, without its words."""

    key: str
    """Names it within its task."""
    role: Literal["user", "assistant", "tool"]
    tokens: int
    """Estimated."""


class CompactionKept(_Document):
    """The messages that stay; calls stay with their results, and what must stay does anyway."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    keys: tuple[str, ...]


class CompactionKeepContext(HookContext):
    """`compaction.keep`: which messages stay in a window that has grown too large."""

    entries: tuple[WindowEntry, ...]
    window_tokens: int
    result: CompactionKept | None = None


class CompactionSummary(_Document):
    """What stands for the messages that are left out."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    summary: str


class CompactionSummariseContext(HookContext):
    """`compaction.summarise`: the words that stand for what is left out."""

    system: str
    """What a model is told about how to do it."""
    text: str
    """What is to be left out, as data."""
    result: CompactionSummary | None = None


class ToolOutput(_Document):
    """What a tool answered."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    text: str
    is_error: bool = False


class ToolContext(HookContext):
    """`tool.invoked`: a tool is about to be called."""

    turn: int
    step: int
    call_id: str
    tool: str
    arguments: str
    """JSON, as the model wrote it. Untrusted."""
    is_idempotent: bool = False
    """Whether calling it twice does what calling it once does, as its server declares."""
    ask: str | None = None
    """Set by a `pre` executor: why a reporter or an admin must allow this call first."""
    approved_by_a_person: bool = False
    """Whether that has happened."""
    result: ToolOutput | None = None


class PlanContext(HookContext):
    """`plan.created`: the agent is about to make its plan, or to replace it."""

    turn: int
    step: int
    call_id: str
    plan: dict[str, Any]
    """What the tool `create_plan` takes: `steps`. Untrusted."""


class BriefContext(HookContext):
    """`subtask.spawned`: the agent is about to give work to a sub-task."""

    turn: int
    step: int
    call_id: str
    brief: dict[str, Any]
    """What the tool `spawn_subtask` takes: `goal`, maybe `description`, `acceptance_criteria`, `agent`. Untrusted."""


class HelpContext(HookContext):
    """`help.decided`: the agent is about to ask a person, or to give a person a task."""

    turn: int
    step: int
    call_id: str
    decision: dict[str, Any]
    """`tool` is `ask_participant` or `create_task_for_participant`, `arguments` what it takes. Untrusted."""


class ActivityContext(HookContext):
    """`activity.failed` and `activity.retried`: work that may have to be done again, such as asking a model."""

    activity: Literal["model"]
    """What kind of work it is."""
    turn: int
    step: int
    error: str = ""
    """Of `activity.failed`: what went wrong. Untrusted."""
    will_retry: bool = False
    """Of `activity.failed`: whether it is done again."""
    pause_s: float = 0.0
    """Of `activity.failed`: seconds until then."""


class ObservedContext(HookContext):
    """Any observed operation: an event of the task's log, after its commit, in order, at least once."""

    seq: int
    event: dict[str, Any]
    """The A2A StreamResponse."""
