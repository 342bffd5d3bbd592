"""Events before they have a number and a time: what the state machine decides and a commit writes."""

from typing import Any

from tiny_harness.contracts import Child, Model, TaskSnapshot
from tiny_harness.effects import CommandOutcome
from tiny_harness.envelope import TaskPatch
from tiny_harness.events import EventKind
from tiny_harness.ext.stream import ReceivedAs, ToolUse
from tiny_harness.hooks.verdict import Verdict
from tiny_harness.states import TaskState


class Draft(Model):
    """One event to write."""

    kind: EventKind
    state: TaskState
    sub_state: str | None = None
    turn: int | None = None
    received: str | None = None
    """The message that it records, a participant's or a note of ours, as A2A JSON."""
    received_as: ReceivedAs | None = None
    tells_task: bool = False
    """Whether it carries the task's data, because a message changed it."""
    in_reply_to: tuple[str, ...] = ()
    """Ids of the messages whose turn it ends."""
    step: int | None = None
    """The step of `turn` whose recorded words it carries."""
    read: tuple[str, ...] = ()
    """Of a step: ids of the messages that were read in it for the first time."""
    tool_calls: tuple[ToolUse, ...] = ()
    """Of a step: what was asked for, and how it ended."""
    question: str | None = None
    """Id of what it asks somebody."""
    choices: tuple[str, ...] = ()
    """What may be answered."""
    words: str | None = None
    """The harness's own words, such as why a turn failed."""
    data: dict[str, Any] | None = None
    """The same for programs, beside the words."""
    command: str | None = None
    """The command that it replies to."""
    outcome: CommandOutcome | None = None
    """What became of that command."""
    refused: tuple[str, ...] = ()
    """Ids of messages that a policy refused after they had been received."""


class Result(Model):
    """What came of a call that needs no tool: it is recorded with the commit."""

    call: int
    """Its place within the step."""
    text: str
    is_error: bool = False


class NewChild(Model):
    """A sub-task to be made before its parent names it."""

    snapshot: TaskSnapshot
    """As it starts."""
    goal: str
    description: str = ""
    acceptance_criteria: tuple[str, ...] = ()


class NewRemote(Model):
    """A sub-task to be given to a remote agent."""

    child: Child
    """Its row."""
    goal: str
    description: str = ""
    acceptance_criteria: tuple[str, ...] = ()


class Decision(Model):
    """What is to become of a task: its next snapshot and the events that say so. No drafts: nothing changes."""

    snapshot: TaskSnapshot
    drafts: tuple[Draft, ...] = ()
    patch: TaskPatch | None = None
    """New values for the task's words."""
    digest: str | None = None
    """Of a message: SHA-256 of its parts."""
    received_as: ReceivedAs = "control"
    turn: int | None = None
    results: tuple[Result, ...] = ()
    """Of the step that `drafts` begin with."""
    children: tuple[NewChild, ...] = ()
    """Sub-tasks to be made first."""
    remotes: tuple[NewRemote, ...] = ()
    """Sub-tasks whose stand-ins are to be started first."""
    verdicts: tuple[Verdict, ...] = ()
    """What hooks said on the way, kept with the commit."""
