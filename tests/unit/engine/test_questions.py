"""A paused turn: what it waits for, and how an answer lets it go on."""

import json

import pytest

from tiny_harness.contracts import Delivery, Input, Question, Sender, TaskSnapshot
from tiny_harness.envelope import answer_part
from tiny_harness.errors import AlreadyAnswered, InvalidInput, RoleNotPermitted
from tiny_harness.ext.task import AGENT_ID, Participant
from tiny_harness.states import AWAITING_APPROVAL, AWAITING_BUDGET, TaskState
from tiny_harness_engine.core import lifecycle, questions
from tiny_harness_engine.core.drafts import Decision
from tiny_harness_engine.core.incoming import read_delivery

APPROVAL = Question(request_id="1.1.0", kind="approval", call=0)
BUDGET = Question(request_id="budget.1.1.0", kind="budget")


def working() -> TaskSnapshot:
    return TaskSnapshot(
        task_id="t",
        context_id="c",
        state=TaskState.WORKING,
        head=3,
        turn=1,
        step=1,
        reading=(Input(seq=1, message_id="m1"),),
        participants=(
            Participant(id="ann", role="reporter"),
            Participant(id="bob", role="assignee"),
            Participant(id=AGENT_ID, kind="agent", role="assignee"),
        ),
    )


def send(snapshot: TaskSnapshot, part: dict[str, object], sender: str = "ann") -> Decision:
    message = json.dumps({"messageId": "m9", "role": "ROLE_USER", "parts": [part]})
    incoming = read_delivery("t", Delivery(sender=Sender(id=sender), message=message))
    return lifecycle.accept(snapshot, incoming.delivery, incoming.intake)


def test_a_pause_asks_and_lets_the_senders_of_the_turn_go() -> None:
    decision = questions.pause(working(), APPROVAL, "May I?")
    [draft] = decision.drafts
    assert (decision.snapshot.state, decision.snapshot.sub_state) == (TaskState.INPUT_REQUIRED, AWAITING_APPROVAL)
    assert (draft.words, draft.question, draft.choices) == ("May I?", "1.1.0", ("approve", "refuse"))
    assert draft.in_reply_to == ("m1",)
    assert decision.snapshot.reading == working().reading


@pytest.mark.parametrize(("value", "allowed"), [("approve", True), ("refuse", False)])
def test_an_answer_lets_the_turn_go_on_with_it(value: str, allowed: bool) -> None:
    paused = questions.pause(working(), APPROVAL, "May I?").snapshot
    after = send(paused, answer_part("1.1.0", value)).snapshot
    assert (after.state, after.sub_state, after.question) == (TaskState.WORKING, None, None)
    assert [(said.call, said.allowed) for said in after.approvals] == [(0, allowed)]
    assert (after.turn, after.step) == (1, 1)


def test_an_answer_that_nobody_waits_for_is_refused() -> None:
    paused = questions.pause(working(), APPROVAL, "May I?").snapshot
    with pytest.raises(AlreadyAnswered):
        send(working(), answer_part("1.1.0", "approve"))
    with pytest.raises(AlreadyAnswered):
        send(paused, answer_part("9.9.9", "approve"))
    with pytest.raises(InvalidInput):
        send(paused, answer_part("1.1.0", "maybe"))


def test_only_a_reporter_or_an_admin_answers() -> None:
    paused = questions.pause(working(), APPROVAL, "May I?").snapshot
    with pytest.raises(RoleNotPermitted):
        send(paused, answer_part("1.1.0", "approve"), sender="bob")


def test_words_refuse_a_call_for_their_reason_and_wait_for_the_next_step() -> None:
    paused = questions.pause(working(), APPROVAL, "May I?").snapshot
    after = send(paused, {"text": "not now"}, sender="bob").snapshot
    assert [(said.allowed, said.reason) for said in after.approvals] == [(False, "not now")]
    assert [message.message_id for message in after.mailbox] == ["m9"]


def test_words_of_a_reporter_grant_another_budget_and_those_of_others_do_not() -> None:
    paused = questions.pause(working(), BUDGET, "The budget is spent.").snapshot
    assert paused.sub_state == AWAITING_BUDGET
    with pytest.raises(RoleNotPermitted):
        send(paused, {"text": "go on"}, sender="bob")
    after = send(paused, {"text": "go on"}).snapshot
    assert (after.state, after.budgets) == (TaskState.WORKING, 1)


def test_a_paused_turn_is_cut_like_a_running_one() -> None:
    paused = questions.pause(working(), APPROVAL, "May I?").snapshot
    decision = lifecycle.cut_turn(paused)
    assert decision is not None
    assert (decision.snapshot.question, decision.snapshot.reading) == (None, ())
    assert decision.drafts[0].in_reply_to == ("m1",)
