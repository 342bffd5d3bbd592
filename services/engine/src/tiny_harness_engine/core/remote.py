"""What a stand-in makes of what it hears from an agent: the sub-task's next row, and what its parent is told. Pure.

Nothing here knows how an agent is asked or a parent is told.
"""

from datetime import datetime, timedelta
from typing import Literal

from tiny_harness.contracts import Child, ChildChanged, Model
from tiny_harness.states import TaskState

FaultKind = Literal["passing", "doubtful", "gone", "final"]
"""`passing`: trying again may help, nothing was done. `doubtful`: so too, but the call may have arrived. `gone`: the
agent does not know the task. `final`: trying again cannot help."""


class Fault(Model):
    """Why an agent gave no answer that can be used."""

    kind: FaultKind
    reason: str
    """For the participants and the model; of bounded length, printable."""


class Seen(Model):
    """A remote task, as its agent shows it."""

    remote_id: str | None = None
    """Its own id; `None`: the agent answered with words alone, which is all there will be."""
    state: TaskState
    sub_state: str | None = None
    message_id: str = ""
    """The agent's message in its status: tells one end of a turn from the next."""
    words: str = ""
    """What it said at last, or what came of it; of bounded length."""


class StandIn(Model):
    """All that a stand-in knows: the argument of its workflow, from one run to the next."""

    parent: str
    """Id of the task that the sub-task is a part of."""
    child: Child
    """Its row there, as far as it was told."""
    message_id: str = ""
    """The agent's message that was told last."""
    is_again: bool = False
    """Whether the brief may have arrived, although no answer came."""
    failing_since: datetime | None = None
    """Since when the agent gives no answer that can be used."""
    pauses: int = 0
    """How many pauses were made since something happened."""


Heard = tuple[StandIn, ChildChanged | None]
"""The stand-in afterwards, and what is to be told, if anything."""


def is_news(stand_in: StandIn, seen: Seen) -> bool:
    """Whether an agent shows another state than the parent has, or the end of another turn."""
    child = stand_in.child
    if (seen.state, seen.sub_state, seen.remote_id) != (child.state, child.sub_state, child.remote_id):
        return True
    return seen.state is TaskState.INPUT_REQUIRED and seen.message_id != stand_in.message_id


def hear(stand_in: StandIn, seen: Seen) -> Heard:
    """Take in how the remote task is."""
    steady = stand_in.model_copy(update={"failing_since": None, "is_again": False})
    if not is_news(stand_in, seen):
        return steady, None
    before = stand_in.child
    ends_turn = seen.state is TaskState.INPUT_REQUIRED and (
        before.state is not TaskState.INPUT_REQUIRED or seen.message_id != stand_in.message_id
    )
    return _tell(steady.model_copy(update={"message_id": seen.message_id}), seen, is_turn=ends_turn)


def bear(stand_in: StandIn, fault: Fault, now: datetime, patience_s: float) -> Heard:
    """Take in that the agent gave no answer: the sub-task fails once it has been so for too long.

    Before the agent has the work, what cannot be helped fails it at once.
    """
    since = stand_in.failing_since or now
    is_sent = stand_in.child.remote_id is not None
    bearing = stand_in.model_copy(
        update={
            "failing_since": since,
            "is_again": not is_sent and (stand_in.is_again or fault.kind == "doubtful"),
        }
    )
    if now - since < timedelta(seconds=patience_s) and (is_sent or fault.kind != "final"):
        return bearing, None
    child = stand_in.child
    words = f"The agent {child.agent} did not finish it: {fault.reason}."
    return _tell(bearing, Seen(remote_id=child.remote_id, state=TaskState.FAILED, words=words), is_turn=False)


def _tell(stand_in: StandIn, seen: Seen, *, is_turn: bool) -> Heard:
    child = stand_in.child.model_copy(
        update={
            "seq": stand_in.child.seq + 1,
            "state": seen.state,
            "sub_state": seen.sub_state,
            "remote_id": seen.remote_id or stand_in.child.remote_id,
        }
    )
    change = ChildChanged(
        task_id=child.task_id,
        seq=child.seq,
        state=child.state,
        sub_state=child.sub_state,
        words=seen.words if is_turn or seen.state.is_terminal else "",
        remote_id=child.remote_id,
        is_news=is_turn,
    )
    return stand_in.model_copy(update={"child": child, "pauses": 0}), change
