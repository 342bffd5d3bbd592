"""The activities as the workflow sees them: their names, arguments, answers and limits."""

from datetime import timedelta
from typing import Any, Final

from temporalio.common import RetryPolicy

from tiny_harness.contracts import Approval, Child, Delivery, Input, Model, NewTask, Receipt, Sender, TaskSnapshot
from tiny_harness.hooks.verdict import Verdict
from tiny_harness_engine.core.acting import TaskLimits
from tiny_harness_engine.core.commands import CommandDone
from tiny_harness_engine.core.drafts import Decision
from tiny_harness_engine.core.lifecycle import NO_REPORT, TurnReport
from tiny_harness_engine.core.steps import CallPlan

TAKE: Final = "take"
COMMIT: Final = "commit"
LOAD: Final = "load"
STEP: Final = "step"
RUN_COMMAND: Final = "run_command"
RUN_TOOL: Final = "run_tool"
JUDGE: Final = "judge"
STOP_CHILDREN: Final = "stop_children"


class Judgement(Model):
    """Whether a task may be completed, as its hooks see it."""

    refusal: str | None = None
    """Why not."""
    unresolved: tuple[str, ...] = ()
    """The sub-tasks that stand in the way, if they are why not."""
    verdicts: tuple[Verdict, ...] = ()


class TakeRequest(Model):
    """A message to take: recognise it, let hooks see it, decide, commit."""

    task_id: str
    delivery: Delivery
    snapshot: TaskSnapshot | None
    """The task as the run knows it."""
    judgement: Judgement | None = None
    """Of a completion whose hooks have been asked elsewhere."""


class TakeAnswer(Model):
    """What became of a message."""

    snapshot: TaskSnapshot | None
    """The task as the store has it now."""
    receipt: Receipt | None = None
    refusal: tuple[str, dict[str, Any]] | None = None
    """Why it was not taken: a packed `HarnessError`."""
    must_judge: bool = False
    """It completes the task, and hooks elsewhere must be asked first, in an activity of their own."""


class JudgeRequest(Model):
    """Ask the hooks whether a task may be completed."""

    task_id: str
    sender: Sender
    reason: str | None = None


class StopChildren(Model):
    """Cancel the sub-tasks of a task that has ended."""

    task_id: str
    """The task that has ended."""
    task_ids: tuple[str, ...]
    """Those on this harness."""
    remotes: tuple[Child, ...] = ()
    """Those at other agents."""


class CommandRequest(Model):
    """Run a command that was recorded."""

    task_id: str
    command: Input
    attempt: int


class CommandAnswer(Model):
    """How a command went, or why its task may not go on at all."""

    done: CommandDone | None = None
    rejected: str | None = None
    verdicts: tuple[Verdict, ...] = ()


class CommitRequest(Model):
    """One decision to write."""

    task_id: str
    cause: str
    head: int
    decision: Decision
    new_task: NewTask | None = None
    """Set when the decision starts the task."""


class CommitAnswer(Model):
    """What the store holds now."""

    snapshot: TaskSnapshot | None
    """`None`: there is no such task."""
    seq: int | None = None
    """Number of the cause's first event, `None` if it is not in the store."""
    digest: str | None = None
    wrote: bool = False
    """Whether this very call wrote it."""


class StepRequest(Model):
    """One step of a turn: ask the model."""

    task_id: str
    context_id: str
    turn: int
    step: int
    attempt: int
    failures: int = 0
    """How often the provider has failed in passing before."""
    reading: tuple[Input, ...]
    model: str | None = None
    """The model that the task chose."""
    effort: str | None = None
    """The effort that the task chose."""


class StepAnswer(Model):
    """How a step went. Its words, if it has any, are in the store."""

    failure: str | None = None
    """Why the model did not answer."""
    is_transient: bool = False
    """Whether another attempt can help."""
    pause_s: float | None = None
    """How long to wait before it, as the configuration and the provider say."""
    rejected: str | None = None
    """Why a policy does not let the task start."""
    report: TurnReport = NO_REPORT
    calls: tuple[CallPlan, ...] = ()
    """What the model asked for; none: the turn is over."""
    limits: TaskLimits = TaskLimits()
    over_budget: str | None = None
    """Why the model was not asked: the budget is spent."""


class ToolRequest(Model):
    """One tool call of a step."""

    task_id: str
    turn: int
    step: int
    call: int
    attempt: int
    approval: Approval | None = None
    """What a person said of it."""


# A retrying local activity blocks the task's other updates and ignores schedule-to-close: few attempts, then a normal
# activity.
LOCAL_COMMIT_TIMEOUT: Final = timedelta(seconds=2)
# Taking a message may ask hooks in this process, which have CHAIN_BUDGET_S in all.
LOCAL_TAKE_TIMEOUT: Final = timedelta(seconds=13)
TAKE_TIMEOUT: Final = timedelta(seconds=30)
JUDGE_TIMEOUT: Final = timedelta(seconds=20)
COMMAND_TIMEOUT: Final = timedelta(seconds=60)
STOP_TIMEOUT: Final = timedelta(seconds=30)
TOOL_TIMEOUT: Final = timedelta(minutes=10)
TOOL_RETRY: Final = RetryPolicy(maximum_attempts=1)
COMMAND_RETRY: Final = RetryPolicy(maximum_attempts=1)
LOCAL_COMMIT_RETRY: Final = RetryPolicy(
    maximum_attempts=4, initial_interval=timedelta(milliseconds=50), maximum_interval=timedelta(milliseconds=500)
)
COMMIT_TIMEOUT: Final = timedelta(seconds=10)
COMMIT_RETRY: Final = RetryPolicy(initial_interval=timedelta(seconds=1), maximum_interval=timedelta(seconds=10))

STEP_TIMEOUT: Final = timedelta(minutes=15)
STEP_HEARTBEAT: Final = timedelta(seconds=10)
# How long a dead worker's step goes unnoticed; a cancel travels with the beats, see HEARTBEAT_THROTTLE.
STEP_RETRY: Final = RetryPolicy(maximum_attempts=1)
# Retries are the workflow's own, so that each is an attempt with a number.
HEARTBEAT_THROTTLE: Final = timedelta(seconds=1)

MODEL_ATTEMPTS: Final = 4
"""How often a step is tried that fails by a bug."""
LOST_ATTEMPTS: Final = 10
"""How often a step is given out again whose worker died or was stopped."""
MODEL_BACKOFF: Final = (timedelta(seconds=1), timedelta(seconds=4), timedelta(seconds=15))
"""Pauses between such attempts."""
OUTAGE_BACKOFF: Final = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
"""Seconds before the attempts of work that the store's absence stopped; the last ones for as long as that takes. Each
costs the run's history a few events."""
