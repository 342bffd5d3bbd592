"""A paused turn: what it waits for, and how an answer lets it go on (DESIGN: being asked). Pure."""

from typing import Final

from tiny_harness import access
from tiny_harness.contracts import Approval, Delivery, Input, Question, TaskSnapshot
from tiny_harness.errors import AlreadyAnswered, InvalidInput
from tiny_harness.intake import Intake
from tiny_harness.states import AWAITING_APPROVAL, AWAITING_BUDGET, TaskState
from tiny_harness_engine.core.drafts import Decision, Draft

APPROVE: Final = "approve"
REFUSE: Final = "refuse"
CONTINUE: Final = "continue"

KINDS: Final = {"approval": (AWAITING_APPROVAL, (APPROVE, REFUSE)), "budget": (AWAITING_BUDGET, (CONTINUE,))}
"""Why a turn is paused, and what may be answered."""


def pause(snapshot: TaskSnapshot, question: Question, words: str) -> Decision:
    """Pause the running turn until somebody has answered."""
    sub_state, choices = KINDS[question.kind]
    after = snapshot.model_copy(
        update={"state": TaskState.INPUT_REQUIRED, "sub_state": sub_state, "question": question}
    )
    draft = Draft(
        kind="reply",
        state=after.state,
        sub_state=sub_state,
        turn=snapshot.turn,
        in_reply_to=tuple(message.message_id for message in snapshot.reading),
        words=words,
        question=question.request_id,
        choices=choices,
    )
    return Decision(snapshot=after, drafts=(draft,), turn=snapshot.turn)


def answer(snapshot: TaskSnapshot, delivery: Delivery, intake: Intake) -> tuple[Decision, Draft]:
    """Take an answer: the turn goes on with it.

    Raises:
        AlreadyAnswered: Nobody waits for it.
        InvalidInput: It is none of the choices.
    """
    question = snapshot.question
    if question is None or question.request_id != intake.request_id:
        raise AlreadyAnswered(intake.request_id or "")
    choices = KINDS[question.kind][1]
    if intake.value not in choices:
        raise InvalidInput("invalid_envelope", "value", f"is one of {', '.join(choices)}")
    allowed = intake.value != REFUSE
    after = _resumed(snapshot, question, allowed=allowed, reason=intake.reason or "")
    draft = Draft(kind="state", state=after.state, turn=after.turn, received=delivery.message, received_as="control")
    return Decision(snapshot=after, received_as="control", turn=after.turn), draft


def say(snapshot: TaskSnapshot, message: Input, intake: Intake) -> Decision:
    """Take words instead of an answer: they refuse a call, for their reason, or grant another budget.

    Raises:
        RoleNotPermitted: The sender may not grant a budget.
    """
    question = snapshot.question
    if question is None:
        raise AlreadyAnswered("")
    if question.kind == "budget":
        sender = message.sender.id if message.sender else ""
        access.check(snapshot.task_id, snapshot.participants, sender, "approve")
    after = _resumed(snapshot, question, allowed=question.kind == "budget", reason=intake.text)
    heard = after.model_copy(update={"mailbox": (*snapshot.mailbox, message)})  # the next step reads it
    return Decision(snapshot=heard, received_as="queued", turn=after.turn)


def _resumed(snapshot: TaskSnapshot, question: Question, *, allowed: bool, reason: str) -> TaskSnapshot:
    resumed = {"state": TaskState.WORKING, "sub_state": None, "question": None}
    if question.kind == "budget":
        return snapshot.model_copy(update={**resumed, "budgets": snapshot.budgets + 1})
    said = Approval(call=question.call, allowed=allowed, reason=reason)
    return snapshot.model_copy(update={**resumed, "approvals": (*snapshot.approvals, said)})
