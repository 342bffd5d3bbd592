"""A supervised task: what its people, its worker and the worker's supervisor do to it (adr-042). Pure.

Only the worker says how the task ended, by a `task_update`: a turn that ends, ends nothing. The worker works elsewhere,
unless it is the harness's own agent, whose turns run as in a conversation.
"""

import json
from typing import Any, Final, Literal

from tiny_harness import access
from tiny_harness.contracts import Delivery, Input, Model, NewTask, Sender, Supervision, TaskSnapshot
from tiny_harness.envelope import WorkerUpdate
from tiny_harness.errors import QueueFull, RoleNotPermitted, TaskEnded, TaskNotFound
from tiny_harness.ext import commands
from tiny_harness.ext.task import AGENT_ID, Participant
from tiny_harness.intake import Intake, authorise
from tiny_harness.states import AWAITING_ANSWER, TaskState
from tiny_harness_engine.core import lifecycle
from tiny_harness_engine.core.blocks import in_block
from tiny_harness_engine.core.drafts import Decision, Draft

MAX_LINE_CHARS: Final = 200
START_WORK: Final = "This task is yours now. Its goal is in its data."


class TaskNotice(Model):
    """What a worker's supervisor tells one task: the argument of the signal `notice`."""

    cause: str
    """Names it: the task takes it once."""
    kind: Literal["starts", "moves", "reminds", "stalls", "warns", "expires"]
    position: int | None = None
    """Of `moves`: its place in the queue, from 1."""
    number: int = 0
    """Of `warns`: which warning, from 1."""
    words: str = ""
    """What is said there. A reminder is said on the oldest of its tasks only."""


def works_here(task: TaskSnapshot) -> bool:
    """Whether the worker of a supervised task is the harness's own agent."""
    return task.supervision is not None and task.supervision.worker == AGENT_ID


def open_task(task_id: str, delivery: Delivery, intake: Intake) -> Decision:
    """Start a supervised task: it waits for its worker to have room.

    Raises:
        TaskNotFound: The message does not start a task.
    """
    new = delivery.new_task
    if new is None or new.worker is None or intake.kind not in ("message", "data"):
        raise TaskNotFound(task_id)
    first = Input(seq=1, message_id=intake.message_id, sender=delivery.sender)
    task = TaskSnapshot(
        task_id=task_id,
        context_id=new.context_id,
        lifecycle="supervised",
        state=TaskState.SUBMITTED,
        participants=lifecycle.with_people(_people(new, new.worker, delivery.sender), intake.patch),
        mailbox=(first,) if new.worker == AGENT_ID and intake.kind == "message" else (),
        supervision=Supervision(worker=new.worker),
    )
    return lifecycle.opened(Decision(snapshot=task, received_as="queued"), delivery, intake)


def accept(task: TaskSnapshot, delivery: Delivery, intake: Intake, *, is_command: bool = False) -> Decision:
    """Take a message to an open supervised task.

    Raises:
        TaskNotFound, RoleNotPermitted: See `intake.authorise`; and only the worker updates its task.
        TaskEnded: The task takes nothing more.
        QueueFull: Too many messages wait already.
    """
    authorise(task.task_id, task.participants, delivery.sender.id, intake)
    if task.state.is_terminal:
        raise TaskEnded(task.task_id, task.state.word)
    if intake.update is not None:
        return _update(task, delivery, intake, intake.update)
    if intake.control == "interrupt":
        return _stop(task, delivery, intake)
    if is_command or intake.kind != "message" or task.question is not None:
        return lifecycle.accept(task, delivery, intake, is_command=is_command)
    joined = task.model_copy(update={"participants": lifecycle.with_people(task.participants, intake.patch)})
    message = Input(seq=task.head + 1, message_id=intake.message_id, sender=delivery.sender)
    return lifecycle.received(_hear(joined, message, intake.text), delivery, intake)


def end_by(task: TaskSnapshot, update: WorkerUpdate) -> TaskSnapshot:
    """Say how a task stands after its worker's update."""
    after = _active(task, last_line=_line(update.summary), busy_minutes=update.minutes)
    match update.status:
        case "done":
            return _over(after, TaskState.COMPLETED)
        case "failed":
            return _over(after, TaskState.FAILED)
        case "blocked":
            return after.model_copy(
                update={"state": TaskState.INPUT_REQUIRED, "sub_state": AWAITING_ANSWER, "step": 0, "reading": ()}
            )
        case "running":
            return _resumed(after)


def drafts_of(task: TaskSnapshot, update: WorkerUpdate, answered: tuple[str, ...] = ()) -> tuple[Draft, ...]:
    """Tell of a worker's update: its words, and the result of what is done as an artifact before them."""
    if update.status == "running":
        return (Draft(kind="state", state=task.state, sub_state=task.sub_state),)
    told = Draft(kind="reply", state=task.state, sub_state=task.sub_state, words=update.summary, in_reply_to=answered)
    if update.status != "done":
        return (told,)
    return (Draft(kind="artifact", state=task.state, words=update.summary), told)


def notice(task: TaskSnapshot, told: TaskNotice) -> Decision | None:
    """Record what the worker's supervisor says; `None` if that is no news any more."""
    supervision = task.supervision
    if task.state.is_terminal or supervision is None:
        return None
    match told.kind:
        case "starts":
            return _start(task, told)
        case "moves":
            is_queued = task.state is TaskState.SUBMITTED
            return _noted(_with(task, position=told.position), told) if is_queued else None
        case "expires":
            ended = lifecycle.end_task(_with(task, is_expired=True), TaskState.CANCELED)
            draft = ended.drafts[0].model_copy(update={"kind": "reply", "words": told.words})
            return ended.model_copy(update={"drafts": (draft,)})
        case _ if task.state is not TaskState.WORKING:
            return None
        case "reminds":
            return _remind(_with(task, reminders=supervision.reminders + 1), told)
        case "stalls":
            return _noted(_with(task, is_stalled=True), told)
        case "warns":
            return _noted(_with(task, warnings=told.number), told)


def _people(new: NewTask, worker: str, sender: Sender) -> tuple[Participant, ...]:
    kind = sender.kind if worker == sender.id else new.worker_kind
    return (
        Participant(id=sender.id, kind=sender.kind, role="reporter"),
        Participant(id=worker, kind=kind, role="assignee"),
    )


def _update(task: TaskSnapshot, delivery: Delivery, intake: Intake, update: WorkerUpdate) -> Decision:
    worker = task.supervision.worker if task.supervision else None
    if delivery.sender.id != worker:
        role = access.strongest_role(task.participants, delivery.sender.id)
        raise RoleNotPermitted(role or "watcher", "say how the task stands: only its worker may")
    after = end_by(task, update)
    drafts = drafts_of(after, update)
    decision = lifecycle.received(Decision(snapshot=after, received_as="control"), delivery, intake)
    own = {"received": delivery.message, "received_as": "control"}
    told = (drafts[-1].model_copy(update=own), *drafts[:-1])[::-1]
    return decision.model_copy(update={"drafts": told})


def _stop(task: TaskSnapshot, delivery: Delivery, intake: Intake) -> Decision:
    """Stop the worker: a running turn of our own is cut, another's is told by the event. Nobody reminds it."""
    cut = lifecycle.cut_turn(task)
    stopped = _with(cut.snapshot if cut else task, is_stopped=True)
    if cut is not None and stopped.state is TaskState.INPUT_REQUIRED:
        stopped = stopped.model_copy(update={"state": TaskState.WORKING, "sub_state": None})
    decision = lifecycle.received(Decision(snapshot=stopped, received_as="control"), delivery, intake)
    if cut is None:
        return decision
    answered = {"in_reply_to": cut.drafts[0].in_reply_to, "turn": cut.turn}
    return decision.model_copy(update={"drafts": (decision.drafts[0].model_copy(update=answered),), "turn": cut.turn})


def _hear(task: TaskSnapshot, message: Input, text: str) -> Decision:
    """Take words: the worker's own are a sign of life, all others are for the worker, and set a stopped one going."""
    worker = task.supervision.worker if task.supervision else None
    sender = message.sender.id if message.sender else ""
    if sender == worker:
        return Decision(snapshot=_resumed(_active(task, last_line=_line(text))), received_as="queued")
    woken = _active(task, is_stopped=False)
    if not works_here(task):
        resumed = _resumed(woken)
        return Decision(snapshot=resumed, received_as="turn" if resumed.state is TaskState.WORKING else "queued")
    if task.state is not TaskState.SUBMITTED and not task.reading:
        return lifecycle.begin_turn(woken, (message, *woken.mailbox))
    if len(task.mailbox) >= lifecycle.MAX_MAILBOX:
        raise QueueFull(lifecycle.MAX_MAILBOX)
    return Decision(snapshot=woken.model_copy(update={"mailbox": (*woken.mailbox, message)}), received_as="queued")


def _start(task: TaskSnapshot, told: TaskNotice) -> Decision | None:
    """Give the task to its worker. Our own agent begins with what was written meanwhile."""
    if task.state is not TaskState.SUBMITTED:
        return None
    started = _with(task, position=None).model_copy(update={"state": TaskState.WORKING})
    if not works_here(task):
        return _noted(started, told)
    if not task.mailbox:
        return _say(started, told, START_WORK)
    begun = lifecycle.begin_turn(started, task.mailbox)
    draft = Draft(kind="state", state=begun.snapshot.state, turn=begun.turn)
    return begun.model_copy(update={"drafts": (draft,)})


def _remind(task: TaskSnapshot, told: TaskNotice) -> Decision:
    """Remind the worker: our own agent by a turn that carries the reminder as data."""
    if not works_here(task) or not told.words:
        return _noted(task, told)
    return _say(task, told, f"A reminder of the harness.\n{in_block('reminder', told.words)}")


def _say(task: TaskSnapshot, told: TaskNotice, text: str) -> Decision:
    """Say something to our own agent, which starts a turn."""
    note: dict[str, Any] = {
        "messageId": told.cause,
        "contextId": task.context_id,
        "taskId": task.task_id,
        "role": "ROLE_AGENT",
        "parts": [{"text": text}],
        "metadata": {commands.KEY: {"literal": True}},
    }
    heard = Input(seq=task.head + 1, message_id=told.cause)
    if task.reading:
        queued = task.model_copy(update={"mailbox": (*task.mailbox, heard)})
        begun = Decision(snapshot=queued, received_as="queued")
    else:
        begun = lifecycle.begin_turn(task, (*task.mailbox, heard))
    draft = Draft(
        kind="input",
        state=begun.snapshot.state,
        turn=begun.turn,
        received=json.dumps(note, ensure_ascii=False),
        received_as=begun.received_as,
    )
    return begun.model_copy(update={"drafts": (draft,)})


def _noted(task: TaskSnapshot, told: TaskNotice) -> Decision:
    kind: Literal["reply", "state"] = "reply" if told.words else "state"
    draft = Draft(kind=kind, state=task.state, sub_state=task.sub_state, words=told.words or None)
    return Decision(snapshot=task, drafts=(draft,))


def _resumed(task: TaskSnapshot) -> TaskSnapshot:
    """A blocked task goes on as soon as it moves, beside whatever the worker does else."""
    if task.state is not TaskState.INPUT_REQUIRED:
        return task
    return task.model_copy(update={"state": TaskState.WORKING, "sub_state": None})


def _over(task: TaskSnapshot, state: TaskState) -> TaskSnapshot:
    return lifecycle.end_task(task, state).snapshot


def _active(task: TaskSnapshot, **facts: Any) -> TaskSnapshot:
    """Note that something happened: whoever waits for that starts anew."""
    count = task.supervision.activity + 1 if task.supervision else 1
    fresh: dict[str, Any] = {"busy_minutes": 0, "reminders": 0, "warnings": 0, "is_stalled": False}
    told = {name: value for name, value in facts.items() if value != ""}
    return _with(task, **{**fresh, **told, "activity": count})


def _with(task: TaskSnapshot, **facts: Any) -> TaskSnapshot:
    if task.supervision is None:
        return task
    return task.model_copy(update={"supervision": task.supervision.model_copy(update=facts)})


def _line(text: str) -> str:
    """Cut words to a line."""
    line = " ".join(text.split())
    return line if len(line) <= MAX_LINE_CHARS else line[: MAX_LINE_CHARS - 1] + "…"
