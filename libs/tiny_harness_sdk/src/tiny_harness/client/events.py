"""What can be seen of a task: a small closed set of values, and two that tell about the connection."""

from dataclasses import dataclass
from datetime import datetime

from tiny_harness.client.views import ASKING, MessageView, TaskView
from tiny_harness.ext.stream import ToolUse
from tiny_harness.ext.supervision import SupervisionData
from tiny_harness.ext.task import TaskData
from tiny_harness.states import TaskState


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskShown:
    """The whole task. Whatever was known of it before is replaced."""

    view: TaskView
    seq: int | None = None
    """Number of the last event that it includes, if the server numbers its events."""
    received_as: str | None = None
    """What became of the message that started the task, where the event records just that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """A numbered change, and how the task is after it."""

    task_id: str
    context_id: str
    state: TaskState
    sub_state: str | None = None
    request_id: str | None = None
    """What an answer names, if the task waits for one."""
    choices: tuple[str, ...] = ()
    """What may be answered, if that is a choice."""
    in_reply_to: tuple[str, ...] = ()
    """Ids of the messages whose turn ends here, or of the command that is answered; empty if neither."""
    seq: int | None = None
    at: datetime | None = None
    data: TaskData | None = None
    """The task's data, where the change tells it; what is not set in it is as it was."""
    supervision: SupervisionData | None = None
    """Of a supervised task: how it stands with its worker after the change; who acknowledged it is not in there."""

    @property
    def ends_turn(self) -> bool:
        """Whether a turn ends here. The answer to a command ends none, also in the middle of one."""
        return bool(self.in_reply_to)

    @property
    def asks(self) -> bool:
        """Whether the task waits to be told something; messages that wait are read after that."""
        is_waiting = self.state is TaskState.INPUT_REQUIRED
        return is_waiting and (self.sub_state in ASKING or self.request_id is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Received(Changed):
    """A participant's message was taken in, or a note for the agent."""

    message: MessageView
    received_as: str | None = None
    """`turn`, `queued`, `command` …; `None` if the message has no words for the agent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replied(Changed):
    """The agent said something, or the harness answered a command (`message.command`)."""

    message: MessageView
    refused: tuple[str, ...] = ()
    """Ids of the messages that a policy refused: the words are the refusal's, no model read them."""

    @property
    def ends_turn(self) -> bool:
        """Whether a turn ends here."""
        return bool(self.in_reply_to) and self.message.command is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stepped(Changed):
    """The agent has used tools, and its turn goes on."""

    tool_calls: tuple[ToolUse, ...]
    """What it used, in order."""
    message: MessageView | None = None
    """What it said before."""
    read: tuple[str, ...] = ()
    """Ids of the messages that it read in this step for the first time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StateChanged(Changed):
    """The state changed without words."""

    caused_by: str | None = None
    """Id of the control message that caused it, if one did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaText:
    """A piece of a reply that is still being written. Never repeated, never numbered."""

    message_id: str
    """The id that the finished message will have."""
    turn: int
    step: int
    attempt: int
    """Higher than before: the model was asked again; drop the pieces of the old attempt."""
    index: int
    """Order within one attempt, from 0."""
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconnecting:
    """The stream broke; another attempt follows by itself."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Connected:
    """The stream is back."""


TaskEvent = TaskShown | Received | Replied | Stepped | StateChanged | DeltaText | Reconnecting | Connected
