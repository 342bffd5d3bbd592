"""The activities as the workflow sees them: their names, arguments, answers and limits."""

from datetime import timedelta
from typing import Final

from temporalio.common import RetryPolicy

from tiny_harness.contracts import Input, Model, NewTask, TaskSnapshot
from tiny_harness_engine.core.drafts import Decision

COMMIT: Final = "commit"
LOAD: Final = "load"
STEP: Final = "step"


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
    reading: tuple[Input, ...]


class StepAnswer(Model):
    """How a step went. Its words, if it has any, are in the store."""

    failure: str | None = None
    """Why the model did not answer."""
    is_transient: bool = False
    """Whether another attempt can help."""


# A retrying local activity blocks the task's other updates and ignores schedule-to-close: few attempts, then a normal
# activity.
LOCAL_COMMIT_TIMEOUT: Final = timedelta(seconds=2)
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
"""How often a provider that fails transiently is asked."""
LOST_ATTEMPTS: Final = 10
"""How often a step is given out again whose worker died or was stopped."""
MODEL_BACKOFF: Final = (timedelta(seconds=1), timedelta(seconds=4), timedelta(seconds=15))
"""Pauses between attempts at a failing provider."""
