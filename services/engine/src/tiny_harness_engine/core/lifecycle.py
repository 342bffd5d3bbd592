"""The task state machine: what each input does to a task (DESIGN: a task's life). Pure.

Each function takes the task as it is and answers a `Decision`; refusals are raised. Nothing here knows how a decision
is stored or carried out.
"""

from typing import Any, Final

from tiny_harness.contracts import ChildChanged, Delivery, Input, Model, TaskSnapshot, Usage
from tiny_harness.envelope import TaskPatch
from tiny_harness.errors import InvalidInput, QueueFull, TaskEnded, TaskNotFound
from tiny_harness.ext.task import AGENT_ID, Participant
from tiny_harness.hooks.verdict import Verdict
from tiny_harness.intake import Intake, authorise, fingerprint
from tiny_harness.states import AWAITING_NEXT_MESSAGE, TaskState
from tiny_harness_engine.core import questions
from tiny_harness_engine.core.drafts import Decision, Draft
from tiny_harness_engine.core.effects import MAX_PARTICIPANTS, add_people

NOTE_PREFIX: Final = "note:"

MAX_MAILBOX: Final = 100
"""Messages that may wait for a running turn."""


NO_STEP: Final[dict[str, Any]] = {"read_count": 0, "question": None, "approvals": ()}
"""What a snapshot has of a step, gone when the step is."""


class TurnReport(Model):
    """What a turn's step tells beside its words."""

    usage: Usage = Usage()
    refused: tuple[str, ...] = ()
    """Ids of messages that a policy refused."""
    verdicts: tuple[Verdict, ...] = ()


NO_REPORT: Final = TurnReport()


def open_task(task_id: str, delivery: Delivery, intake: Intake, *, is_command: bool = False) -> Decision:
    """Start a task with its first message. A command, or a message without words, starts a parked conversation.

    Raises:
        TaskNotFound: The message does not start a task, or is a control.
    """
    new = delivery.new_task
    if new is None or intake.kind == "control":
        raise TaskNotFound(task_id)
    people = (
        Participant(id=delivery.sender.id, kind=delivery.sender.kind, role="reporter"),
        Participant(id=AGENT_ID, kind="agent", role="assignee"),
    )
    empty = TaskSnapshot(
        task_id=task_id,
        context_id=new.context_id,
        lifecycle=new.lifecycle,
        state=TaskState.INPUT_REQUIRED,
        participants=with_people(people, intake.patch),
    )
    if is_command:
        decision = Decision(snapshot=_parked(empty), received_as="command")
    elif intake.kind == "message":
        decision = begin_turn(empty, (Input(seq=1, message_id=intake.message_id, sender=delivery.sender),))
    else:
        decision = Decision(snapshot=_parked(empty))
    return opened(decision, delivery, intake)


def opened(decision: Decision, delivery: Delivery, intake: Intake) -> Decision:
    """Record the first message of a task with what it starts."""
    draft = Draft(
        kind="task",
        state=decision.snapshot.state,
        sub_state=decision.snapshot.sub_state,
        turn=decision.turn,
        received=delivery.message,
        received_as=decision.received_as,
        tells_task=True,
    )
    return _with(decision, draft, delivery, intake)


def accept(snapshot: TaskSnapshot, delivery: Delivery, intake: Intake, *, is_command: bool = False) -> Decision:
    """Take a message to an open task: it starts a turn, waits for the running one, or acts on the task.

    A command is only recorded: `core.commands` answers it.

    Raises:
        TaskNotFound, RoleNotPermitted: See `intake.authorise`.
        TaskEnded: The task takes nothing more.
        QueueFull: Too many messages wait already.
    """
    authorise(snapshot.task_id, snapshot.participants, delivery.sender.id, intake)
    if snapshot.state.is_terminal:
        raise TaskEnded(snapshot.task_id, snapshot.state.word)
    if intake.update is not None:
        raise InvalidInput("invalid_envelope", "kind", "this task has no worker: only a supervised one is updated")
    if intake.control == "answer":
        return _with(*questions.answer(snapshot, delivery, intake), delivery, intake)
    if intake.kind == "control":
        return _control(snapshot, delivery, intake)
    joined = snapshot.model_copy(update={"participants": with_people(snapshot.participants, intake.patch)})
    if is_command:
        decision = Decision(snapshot=joined, received_as="command")
    elif intake.kind == "data":
        decision = Decision(snapshot=joined)
    else:
        message = Input(seq=snapshot.head + 1, message_id=intake.message_id, sender=delivery.sender)
        decision = _take_words(joined, message, intake)
    return received(decision, delivery, intake)


def received(decision: Decision, delivery: Delivery, intake: Intake) -> Decision:
    """Record a message to an open task with what it does there."""
    draft = Draft(
        kind="input" if intake.kind == "message" else "state",
        state=decision.snapshot.state,
        sub_state=decision.snapshot.sub_state,
        turn=decision.turn,
        received=delivery.message,
        received_as=decision.received_as,
        tells_task=intake.patch is not None,
    )
    return _with(decision, draft, delivery, intake)


def end_turn(snapshot: TaskSnapshot, turn: int, step: int, report: TurnReport = NO_REPORT) -> Decision | None:
    """End a turn with the words that its step recorded; `None` if that turn is over already."""
    if not is_current(snapshot, turn, step):
        return None
    done = _after_reply(snapshot)
    reply = Draft(kind="reply", state=done, turn=turn, step=step)
    decision = with_report(_close_turn(snapshot, done, reply), report)
    if decision.snapshot.state is not TaskState.COMPLETED:
        return decision
    result = reply.model_copy(update={"kind": "artifact"})
    return decision.model_copy(update={"drafts": (result, *decision.drafts)})


def fail_turn(
    snapshot: TaskSnapshot, turn: int, step: int, reason: str, report: TurnReport = NO_REPORT
) -> Decision | None:
    """End a turn that failed for good: a conversation parks with the reason, a delegated task has FAILED."""
    if not is_current(snapshot, turn, step):
        return None
    done = TaskState.FAILED if snapshot.lifecycle == "delegated" else TaskState.INPUT_REQUIRED
    return with_report(_close_turn(snapshot, done, Draft(kind="reply", state=done, turn=turn, words=reason)), report)


def reject(snapshot: TaskSnapshot, reason: str, verdicts: tuple[Verdict, ...] = ()) -> Decision | None:
    """End a task that a policy did not let start; `None` if it has ended already."""
    if snapshot.state.is_terminal:
        return None
    decision = end_task(snapshot, TaskState.REJECTED)
    draft = decision.drafts[0].model_copy(update={"kind": "reply", "words": reason})
    return decision.model_copy(update={"drafts": (draft,), "verdicts": verdicts})


def cut_turn(snapshot: TaskSnapshot) -> Decision | None:
    """Stop the running turn and park, or go on with the messages that wait; `None` if no turn runs."""
    if not snapshot.reading:
        return None
    cut = Draft(kind="state", state=TaskState.INPUT_REQUIRED, turn=snapshot.turn, step=snapshot.step)
    return _close_turn(snapshot, TaskState.INPUT_REQUIRED, cut)


def child_changed(snapshot: TaskSnapshot, change: ChildChanged, note: str) -> Decision | None:
    """Note what became of a sub-task; `None` if that is known, or the task has ended. An end is news for the model.

    Args:
        snapshot: The task.
        change: How the sub-task is now.
        note: The news, as a message's JSON; used if the sub-task has ended, or a remote one's turn has.
    """
    row = next((child for child in snapshot.children if child.task_id == change.task_id), None)
    if snapshot.state.is_terminal or row is None or row.seq >= change.seq:
        return None
    noted = row.model_copy(
        update={
            "seq": change.seq,
            "state": change.state,
            "sub_state": change.sub_state,
            "remote_id": change.remote_id or row.remote_id,
        }
    )
    children = tuple(noted if child is row else child for child in snapshot.children)
    after = snapshot.model_copy(update={"children": children})
    if not (change.state.is_terminal or change.is_news):
        draft = Draft(kind="state", state=after.state, sub_state=after.sub_state, tells_task=True)
        return Decision(snapshot=after, drafts=(draft,))
    decision = _take_note(after, Input(seq=snapshot.head + 1, message_id=note_id(change)))
    draft = Draft(
        kind="input",
        state=decision.snapshot.state,
        sub_state=decision.snapshot.sub_state,
        turn=decision.turn,
        received=note,
        received_as=decision.received_as,
        tells_task=True,
    )
    return decision.model_copy(update={"drafts": (draft,)})


def note_id(change: ChildChanged) -> str:
    """Name the message that tells the model of a sub-task's end."""
    return f"{NOTE_PREFIX}{change.task_id}:{change.seq}"


def cancel(snapshot: TaskSnapshot) -> Decision | None:
    """Cancel a task; `None` if it has ended already."""
    return None if snapshot.state.is_terminal else end_task(snapshot, TaskState.CANCELED)


def restore(snapshot: TaskSnapshot) -> Decision:
    """Tell a task as it is, after the store has lost what led there."""
    told = Draft(kind="state", state=snapshot.state, sub_state=snapshot.sub_state, tells_task=True)
    return Decision(snapshot=snapshot, drafts=(told,))


def is_running(snapshot: TaskSnapshot) -> bool:
    """Whether a turn is to be worked on."""
    return snapshot.state is TaskState.WORKING and bool(snapshot.reading)


def _control(snapshot: TaskSnapshot, delivery: Delivery, intake: Intake) -> Decision:
    if intake.control == "complete":
        decision = end_task(snapshot, TaskState.COMPLETED)
    else:
        cut = cut_turn(snapshot)
        if cut is None:
            return Decision(snapshot=snapshot)
        decision = cut
    draft = decision.drafts[0].model_copy(update={"received": delivery.message, "received_as": "control"})
    digest = fingerprint(delivery.sender.id, intake)
    return decision.model_copy(update={"drafts": (draft,), "digest": digest, "received_as": "control"})


def _take_words(snapshot: TaskSnapshot, message: Input, intake: Intake) -> Decision:
    if snapshot.question is not None:
        return questions.say(snapshot, message, intake)
    if not _works_here(snapshot):
        return _hear_participant(snapshot, message)
    if not snapshot.reading and snapshot.state is not TaskState.SUBMITTED:
        return begin_turn(snapshot, (message, *snapshot.mailbox))
    if len(snapshot.mailbox) >= MAX_MAILBOX:
        raise QueueFull(MAX_MAILBOX)
    queued = snapshot.model_copy(update={"mailbox": (*snapshot.mailbox, message)})
    return Decision(snapshot=queued, received_as="queued")


def _works_here(snapshot: TaskSnapshot) -> bool:
    """Whether our agent works on the task; else it is a participant's, made by `create_task_for_participant`."""
    return any(person.id == AGENT_ID and person.role == "assignee" for person in snapshot.participants)


def _hear_participant(snapshot: TaskSnapshot, message: Input) -> Decision:
    """Take words on a task that a participant works on: the assignee's reply completes it (R3.4)."""
    sender = message.sender.id if message.sender else ""
    if not any(person.id == sender and person.role == "assignee" for person in snapshot.participants):
        return Decision(snapshot=snapshot, received_as="queued")
    done = snapshot.model_copy(update={"state": TaskState.COMPLETED, "sub_state": None})
    return Decision(snapshot=done, received_as="turn")


def _take_note(snapshot: TaskSnapshot, note: Input) -> Decision:
    """Give the model a note: at once if it is idle, else after what it does, or waits for."""
    is_idle = not snapshot.reading and snapshot.sub_state in (None, AWAITING_NEXT_MESSAGE)
    if is_idle and snapshot.state in (TaskState.INPUT_REQUIRED, TaskState.WORKING):
        return begin_turn(snapshot, (note, *snapshot.mailbox))
    waiting = snapshot.model_copy(update={"mailbox": (*snapshot.mailbox, note)})
    return Decision(snapshot=waiting, received_as="queued")


def _after_reply(snapshot: TaskSnapshot) -> TaskState:
    """A conversation waits for its people; a delegated task is done, unless it waits for its sub-tasks (R3.4, R3.5).

    A supervised task goes on: a turn that ends, ends nothing (adr-042).
    """
    if snapshot.lifecycle == "supervised":
        return TaskState.WORKING
    if snapshot.lifecycle != "delegated":
        return TaskState.INPUT_REQUIRED
    return TaskState.WORKING if snapshot.unresolved else TaskState.COMPLETED


def begin_turn(snapshot: TaskSnapshot, reading: tuple[Input, ...]) -> Decision:
    """Start the next turn, which reads these messages."""
    turn = snapshot.turn + 1
    working = snapshot.model_copy(
        update={
            "state": TaskState.WORKING,
            "sub_state": None,
            "turn": turn,
            "step": 1,
            "reading": reading,
            "mailbox": (),
            **NO_STEP,
        }
    )
    return Decision(snapshot=working, received_as="turn", turn=turn)


def _close_turn(snapshot: TaskSnapshot, done: TaskState, draft: Draft) -> Decision:
    """End the running turn. Messages that wait start the next one at once, unless the task has FAILED."""
    answered = tuple(message.message_id for message in snapshot.reading)
    idle = snapshot.model_copy(update={"state": done, "sub_state": None, "step": 0, "reading": (), **NO_STEP})
    if snapshot.mailbox and done is not TaskState.FAILED:
        after = begin_turn(idle, snapshot.mailbox).snapshot
    else:
        after = _parked(idle) if done is TaskState.INPUT_REQUIRED else idle
    told = draft.model_copy(update={"state": after.state, "sub_state": after.sub_state, "in_reply_to": answered})
    return Decision(snapshot=after, drafts=(told,), turn=draft.turn)


def with_report(decision: Decision, report: TurnReport) -> Decision:
    """Put what a step tells beside its words into what it decides."""
    draft, *others = decision.drafts
    draft = draft.model_copy(update={"refused": report.refused})
    used = decision.snapshot.model_copy(update={"usage": decision.snapshot.usage.plus(report.usage)})
    return decision.model_copy(update={"snapshot": used, "drafts": (draft, *others), "verdicts": report.verdicts})


def end_task(snapshot: TaskSnapshot, state: TaskState) -> Decision:
    """End the task from outside: a running turn is cut, messages that wait stay unread in its history."""
    cut = tuple(message.message_id for message in snapshot.reading)
    turn = snapshot.turn if cut else None
    after = snapshot.model_copy(update={"state": state, "sub_state": None, "step": 0, "reading": (), "commands": ()})
    return Decision(snapshot=after, drafts=(Draft(kind="state", state=state, turn=turn, in_reply_to=cut),), turn=turn)


def is_current(snapshot: TaskSnapshot, turn: int, step: int) -> bool:
    """Whether a turn and step are the running ones."""
    return is_running(snapshot) and (snapshot.turn, snapshot.step) == (turn, step)


def _parked(snapshot: TaskSnapshot) -> TaskSnapshot:
    return snapshot.model_copy(update={"state": TaskState.INPUT_REQUIRED, "sub_state": AWAITING_NEXT_MESSAGE})


def with_people(people: tuple[Participant, ...], patch: TaskPatch | None) -> tuple[Participant, ...]:
    """Add whom an envelope adds."""
    everyone = add_people(people, patch.participants or () if patch else ())
    if len(everyone) > MAX_PARTICIPANTS:
        raise InvalidInput("invalid_envelope", "payload.participants", f"a task may have {MAX_PARTICIPANTS}")
    return everyone


def _with(decision: Decision, draft: Draft, delivery: Delivery, intake: Intake) -> Decision:
    digest = fingerprint(delivery.sender.id, intake)
    return decision.model_copy(update={"drafts": (draft,), "patch": intake.patch, "digest": digest})
