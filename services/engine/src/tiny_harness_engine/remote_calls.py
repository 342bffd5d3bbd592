"""The activities of a remote sub-task's stand-in, as its workflow sees them: names, arguments, answers and limits."""

from datetime import timedelta
from typing import Final

from temporalio.common import RetryPolicy

from tiny_harness.contracts import ChildChanged, Model
from tiny_harness_engine.core.remote import Fault, Seen

REMOTE_SEND: Final = "remote_send"
REMOTE_LOOK: Final = "remote_look"
REMOTE_FOLLOW: Final = "remote_follow"
REMOTE_CANCEL: Final = "remote_cancel"
REMOTE_TELL: Final = "remote_tell"
FOLLOW_CHILDREN: Final = "follow_children"

QUEUE_SUFFIX: Final = ".agents"
"""Behind the task queue's name: the queue of the streams, which are long and would hold up everything else."""


class RemoteAnswer(Model):
    """What came of asking an agent."""

    seen: Seen | None = None
    fault: Fault | None = None
    is_orphan: bool = False
    """The parent has ended, or does not have the sub-task: nobody is interested any more."""
    may_have_arrived: bool = False
    """Of an orphan: an attempt that died may have sent its brief."""
    streams: bool = False
    """Whether the agent says that its tasks can be followed."""
    was_steady: bool = False
    """Of a stream: it held for a while, so the next one may be opened at once."""
    patience_s: float = 0.0
    """How long the agent may be away, says the configuration."""


class TellRequest(Model):
    """Tell a parent how its sub-task is now."""

    parent: str
    change: ChildChanged


# Each call to an agent is bounded by the agent's own `timeout`; these are for a worker that hangs.
SEND_TIMEOUT: Final = timedelta(minutes=15)
LOOK_TIMEOUT: Final = timedelta(minutes=10)
FOLLOW_S: Final = 600.0
"""How long one stream is read at most; the parent is looked at in between."""
FOLLOW_TIMEOUT: Final = timedelta(seconds=FOLLOW_S + 60)
FOLLOW_START_TIMEOUT: Final = timedelta(seconds=20)
"""How long a stream may wait for a worker; without one the task is looked at instead."""
CANCEL_S: Final = 4.0
"""What one attempt to cancel may take: a cancel reaches every child within 5 s, or the child is listed."""
CANCEL_TIMEOUT: Final = timedelta(seconds=CANCEL_S + 6)
STOP_S: Final = 5.0
"""How long whoever ends waits for its remote sub-tasks to stop."""
TELL_TIMEOUT: Final = timedelta(seconds=20)
HEARTBEAT: Final = timedelta(seconds=10)
RETRY: Final = RetryPolicy(initial_interval=timedelta(seconds=1), maximum_interval=timedelta(seconds=10))
ONCE: Final = RetryPolicy(maximum_attempts=1)

PAUSES_S: Final = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0)
"""Between two looks at a task that does not stream, or waits for somebody; from the start again after each change."""
