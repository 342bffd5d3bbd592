"""What each input does to a task."""

import json
from typing import Any

import pytest

from tiny_harness.contracts import Child, ChildChanged, Delivery, Input, NewTask, Sender, TaskSnapshot, Usage
from tiny_harness.envelope import MEDIA_TYPE, control_part
from tiny_harness.errors import InvalidInput, QueueFull, RoleNotPermitted, TaskEnded, TaskNotFound
from tiny_harness.ext.task import Lifecycle, Participant
from tiny_harness.hooks import Verdict
from tiny_harness.intake import read_message
from tiny_harness.states import AWAITING_ANSWER, AWAITING_NEXT_MESSAGE, TERMINAL_STATES, TaskState
from tiny_harness_engine.core import lifecycle
from tiny_harness_engine.core.drafts import Decision
from tiny_harness_engine.core.lifecycle import TurnReport


def deliver(
    snapshot: TaskSnapshot | None,
    message_id: str,
    *parts: dict[str, Any],
    sender: str = "ann",
    is_command: bool = False,
    **new: Any,
) -> Decision:
    message = {"messageId": message_id, "role": "ROLE_USER", "parts": list(parts) or [{"text": "hi"}]}
    delivery = Delivery(
        sender=Sender(id=sender),
        message=json.dumps(message),
        new_task=NewTask(context_id="c", **new) if snapshot is None else None,
    )
    intake = read_message(message)
    if snapshot is None:
        return lifecycle.open_task("t", delivery, intake, is_command=is_command)
    return lifecycle.accept(snapshot, delivery, intake, is_command=is_command)


def after(decision: Decision | None) -> TaskSnapshot:
    """Apply a decision as the store does."""
    assert decision is not None
    return decision.snapshot.model_copy(update={"head": decision.snapshot.head + len(decision.drafts)})


def opened(lifecycle_name: Lifecycle = "conversation") -> TaskSnapshot:
    return after(deliver(None, "m1", lifecycle=lifecycle_name))


def parked() -> TaskSnapshot:
    return after(lifecycle.end_turn(opened(), 1, 1))


def test_a_first_message_starts_a_turn_and_makes_its_sender_the_reporter() -> None:
    task = opened()
    assert (task.state, task.turn, [m.message_id for m in task.reading]) == (TaskState.WORKING, 1, ["m1"])
    assert [(p.id, p.role) for p in task.participants] == [("ann", "reporter"), ("tiny-harness", "assignee")]


def test_a_first_message_without_words_parks_at_once() -> None:
    decision = deliver(None, "m1", {"data": {"kind": "task", "payload": {"goal": "g"}}, "mediaType": MEDIA_TYPE})
    assert decision.snapshot.state is TaskState.INPUT_REQUIRED
    assert decision.drafts[0].sub_state == AWAITING_NEXT_MESSAGE


def test_a_control_starts_no_task() -> None:
    with pytest.raises(TaskNotFound):
        deliver(None, "m1", control_part("complete"))


def test_a_reply_parks_a_conversation_and_never_completes_it() -> None:
    decision = lifecycle.end_turn(opened(), 1, 1)
    assert decision is not None
    assert (decision.snapshot.state, decision.snapshot.sub_state) == (TaskState.INPUT_REQUIRED, AWAITING_NEXT_MESSAGE)
    assert decision.drafts[0].in_reply_to == ("m1",)


def test_a_parked_task_resumes_in_working_and_drops_its_sub_state() -> None:
    decision = deliver(parked(), "m2")
    assert (decision.snapshot.state, decision.snapshot.sub_state, decision.snapshot.turn) == (
        TaskState.WORKING,
        None,
        2,
    )
    assert decision.received_as == "turn"


def test_a_delegated_task_completes_with_its_reply() -> None:
    assert after(lifecycle.end_turn(opened("delegated"), 1, 1)).state is TaskState.COMPLETED


def test_a_message_to_a_busy_task_waits_and_starts_the_next_turn() -> None:
    busy = after(deliver(opened(), "m2"))
    busy = after(deliver(busy, "m3"))
    assert [m.message_id for m in busy.mailbox] == ["m2", "m3"]
    decision = lifecycle.end_turn(busy, 1, 1)
    assert decision is not None
    assert decision.drafts[0].state is TaskState.WORKING
    assert [m.message_id for m in decision.snapshot.reading] == ["m2", "m3"]
    assert (decision.snapshot.turn, decision.snapshot.mailbox) == (2, ())


def test_a_busy_delegated_task_does_not_complete_over_unread_messages() -> None:
    busy = after(deliver(opened("delegated"), "m2"))
    assert after(lifecycle.end_turn(busy, 1, 1)).state is TaskState.WORKING


def test_the_mailbox_is_bounded() -> None:
    task = opened()
    for index in range(lifecycle.MAX_MAILBOX):
        task = after(deliver(task, f"q{index}"))
    with pytest.raises(QueueFull):
        deliver(task, "one too many")


def test_a_model_that_fails_for_good_parks_a_conversation_with_the_reason() -> None:
    decision = lifecycle.fail_turn(opened(), 1, 1, "no route")
    assert decision is not None
    assert (decision.snapshot.state, decision.drafts[0].words) == (TaskState.INPUT_REQUIRED, "no route")


def test_a_model_that_fails_for_good_fails_a_delegated_task() -> None:
    busy = after(deliver(opened("delegated"), "m2"))
    assert after(lifecycle.fail_turn(busy, 1, 1, "no route")).state is TaskState.FAILED


@pytest.mark.parametrize("stale", [(1, 2), (2, 1), (0, 0)])
def test_a_step_that_is_not_the_current_one_decides_nothing(stale: tuple[int, int]) -> None:
    assert lifecycle.end_turn(opened(), *stale) is None
    assert lifecycle.fail_turn(opened(), *stale, "x") is None


def test_a_turn_that_was_cut_cannot_end_again() -> None:
    cut = after(deliver(opened(), "i1", control_part("interrupt")))
    assert lifecycle.end_turn(cut, 1, 1) is None


def test_interrupt_cuts_the_turn_and_keeps_the_task() -> None:
    decision = deliver(opened(), "i1", control_part("interrupt"))
    assert decision.snapshot.state is TaskState.INPUT_REQUIRED
    assert decision.drafts[0].in_reply_to == ("m1",)


def test_messages_queued_at_an_interrupt_start_the_next_turn() -> None:
    busy = after(deliver(opened(), "m2"))
    decision = deliver(busy, "i1", control_part("interrupt"))
    assert (decision.snapshot.state, [m.message_id for m in decision.snapshot.reading]) == (TaskState.WORKING, ["m2"])


def test_interrupt_without_a_turn_changes_nothing() -> None:
    decision = deliver(parked(), "i1", control_part("interrupt"))
    assert (decision.drafts, decision.snapshot) == ((), parked())


@pytest.mark.parametrize(
    "task", [opened(), parked(), after(deliver(opened(), "m2"))], ids=["working", "parked", "queued"]
)
def test_complete_ends_any_open_task(task: TaskSnapshot) -> None:
    decision = deliver(task, "c1", control_part("complete"))
    assert decision.snapshot.state is TaskState.COMPLETED
    assert decision.snapshot.mailbox == task.mailbox
    assert decision.drafts[0].in_reply_to == tuple(m.message_id for m in task.reading)


@pytest.mark.parametrize("state", sorted(TaskState))
def test_cancel_ends_every_open_task_and_no_other(state: TaskState) -> None:
    decision = lifecycle.cancel(parked().model_copy(update={"state": state, "sub_state": None}))
    if state in TERMINAL_STATES:
        assert decision is None
    else:
        assert after(decision).state is TaskState.CANCELED


@pytest.mark.parametrize("state", sorted(TERMINAL_STATES))
@pytest.mark.parametrize("part", [{"text": "x"}, control_part("complete"), control_part("interrupt")])
def test_an_ended_task_takes_nothing_and_says_its_state(state: TaskState, part: dict[str, Any]) -> None:
    with pytest.raises(TaskEnded) as caught:
        deliver(parked().model_copy(update={"state": state}), "m9", part)
    assert caught.value.state == state.word


def test_a_stranger_meets_no_task() -> None:
    with pytest.raises(TaskNotFound):
        deliver(parked(), "m2", sender="eve")


@pytest.mark.parametrize("part", [{"text": "x"}, control_part("complete"), control_part("interrupt")])
def test_a_watcher_only_watches(part: dict[str, Any]) -> None:
    watched = parked()
    watched = watched.model_copy(
        update={"participants": (*watched.participants, Participant(id="wat", role="watcher"))}
    )
    with pytest.raises(RoleNotPermitted):
        deliver(watched, "m2", part, sender="wat")


def people(*participants: dict[str, str]) -> dict[str, Any]:
    return {"data": {"kind": "task", "payload": {"participants": list(participants)}}, "mediaType": MEDIA_TYPE}


def test_a_reporter_adds_participants_and_the_task_stays_parked() -> None:
    decision = deliver(parked(), "m2", people({"id": "bob", "role": "watcher"}))
    assert ("bob", "watcher") in [(p.id, p.role) for p in decision.snapshot.participants]
    assert decision.snapshot.state is TaskState.INPUT_REQUIRED
    assert decision.drafts[0].tells_task


def test_an_assignee_may_not_add_participants() -> None:
    task = parked().model_copy(update={"participants": (Participant(id="bob", role="assignee"),)})
    with pytest.raises(RoleNotPermitted):
        deliver(task, "m2", people({"id": "eve", "role": "watcher"}), sender="bob")


def test_a_policy_ends_a_task_as_rejected_with_its_reason() -> None:
    busy = after(deliver(opened(), "m2"))
    decision = lifecycle.reject(busy, "closed on Sundays", (NOTED,))
    assert decision is not None
    [draft] = decision.drafts
    assert (decision.snapshot.state, draft.state, draft.kind, draft.words) == (
        TaskState.REJECTED,
        TaskState.REJECTED,
        "reply",
        "closed on Sundays",
    )
    assert draft.in_reply_to == ("m1",)
    assert decision.verdicts == (NOTED,)
    assert [m.message_id for m in decision.snapshot.mailbox] == ["m2"], "what waited stays unread"


def test_an_end_drops_the_commands_that_wait() -> None:
    waiting = (Input(seq=9, message_id="c1"),)
    for decision in (
        lifecycle.reject(parked().model_copy(update={"commands": waiting}), "no"),
        lifecycle.cancel(parked().model_copy(update={"commands": waiting})),
    ):
        assert after(decision).commands == ()


@pytest.mark.parametrize("state", sorted(TERMINAL_STATES))
def test_what_has_ended_is_neither_rejected_nor_cut_nor_told(state: TaskState) -> None:
    ended = family(state=state)
    assert lifecycle.reject(ended, "no") is None
    assert lifecycle.cut_turn(ended) is None
    assert lifecycle.child_changed(ended, change("k1", 2), "{}") is None


def test_a_cut_turn_parks_and_answers_nobody_with_words() -> None:
    decision = lifecycle.cut_turn(opened())
    assert decision is not None
    [draft] = decision.drafts
    assert (draft.state, draft.sub_state, draft.words, draft.in_reply_to) == (
        TaskState.INPUT_REQUIRED,
        AWAITING_NEXT_MESSAGE,
        None,
        ("m1",),
    )
    assert (decision.snapshot.step, decision.snapshot.reading) == (0, ())


def test_a_cut_turn_goes_on_with_what_waits() -> None:
    cut = after(lifecycle.cut_turn(after(deliver(opened(), "m2"))))
    assert (cut.state, cut.turn, [m.message_id for m in cut.reading]) == (TaskState.WORKING, 2, ["m2"])


def test_without_a_turn_there_is_nothing_to_cut() -> None:
    assert lifecycle.cut_turn(parked()) is None


def test_news_of_a_sub_task_are_told_and_the_task_stays_as_it_is() -> None:
    decision = lifecycle.child_changed(family(), change("k1", 4, state=TaskState.WORKING), "{}")
    assert decision is not None
    assert [(row.task_id, row.seq, row.state) for row in decision.snapshot.children] == [
        ("k1", 4, TaskState.WORKING),
        ("k2", 1, TaskState.INPUT_REQUIRED),
    ]
    [draft] = decision.drafts
    assert (draft.kind, draft.state, draft.sub_state, draft.tells_task) == (
        "state",
        TaskState.INPUT_REQUIRED,
        AWAITING_NEXT_MESSAGE,
        True,
    )


def test_the_end_of_a_sub_task_is_a_note_that_an_idle_model_reads_at_once() -> None:
    decision = lifecycle.child_changed(family(), change("k1", 4, state=TaskState.COMPLETED), '{"note": 1}')
    assert decision is not None
    [draft] = decision.drafts
    assert (draft.kind, draft.received, draft.received_as, draft.tells_task) == ("input", '{"note": 1}', "turn", True)
    assert (decision.snapshot.state, decision.snapshot.turn) == (TaskState.WORKING, 2)
    assert [message.message_id for message in decision.snapshot.reading] == ["note:k1:4"]
    assert decision.snapshot.unresolved == ("k2",)


def test_a_note_is_no_answer_to_a_question() -> None:
    asking = family(sub_state=AWAITING_ANSWER)
    decision = lifecycle.child_changed(asking, change("k1", 4, state=TaskState.FAILED), "{}")
    assert decision is not None
    assert (decision.snapshot.sub_state, decision.received_as) == (AWAITING_ANSWER, "queued")
    assert [message.message_id for message in decision.snapshot.mailbox] == ["note:k1:4"]


def test_a_delegated_task_waits_for_its_sub_tasks_and_goes_on_with_the_news() -> None:
    working = opened().model_copy(update={"children": family().children, "lifecycle": "delegated"})
    idle = after(lifecycle.end_turn(working, 1, 1))
    assert (idle.state, idle.reading) == (TaskState.WORKING, ())
    assert not lifecycle.is_running(idle)
    told = after(lifecycle.child_changed(idle, change("k1", 4, state=TaskState.COMPLETED), "{}"))
    assert lifecycle.is_running(told)
    assert after(deliver(idle, "m9")).turn == 2


@pytest.mark.parametrize(("child", "seq"), [("k1", 1), ("k1", 0), ("stranger", 9)])
def test_old_news_and_news_of_a_stranger_change_nothing(child: str, seq: int) -> None:
    assert lifecycle.child_changed(family(), change(child, seq), "{}") is None


def test_news_of_a_sub_task_do_not_disturb_a_running_turn() -> None:
    running = opened().model_copy(update={"children": family().children})
    decision = lifecycle.child_changed(running, change("k2", 3, state=TaskState.CANCELED), "{}")
    assert decision is not None
    assert decision.drafts[0].state is TaskState.WORKING
    assert (decision.snapshot.turn, decision.snapshot.reading) == (running.turn, running.reading)


def test_a_turns_report_is_added_up_and_told_with_its_end() -> None:
    report = TurnReport(usage=Usage(calls=1, input_tokens=5, output_tokens=2), refused=("m1",), verdicts=(NOTED,))
    for end in (lifecycle.end_turn(opened(), 1, 1, report), lifecycle.fail_turn(opened(), 1, 1, "no route", report)):
        assert end is not None
        assert (end.snapshot.usage, end.drafts[0].refused, end.verdicts) == (report.usage, ("m1",), (NOTED,))
    twice = after(lifecycle.end_turn(after(deliver(after(end), "m2")), 2, 1, report))
    assert twice.usage == Usage(calls=2, input_tokens=10, output_tokens=4)


def test_a_command_is_recorded_and_starts_no_turn() -> None:
    for task in (None, parked(), opened()):
        decision = deliver(task, "c1", {"text": "/status"}, is_command=True)
        before = task or decision.snapshot
        assert decision.received_as == "command"
        assert decision.drafts[0].received_as == "command"
        assert (decision.snapshot.state, decision.snapshot.turn, decision.snapshot.mailbox) == (
            before.state,
            before.turn,
            (),
        )
    first = deliver(None, "c1", {"text": "/status"}, is_command=True).snapshot
    assert (first.state, first.sub_state) == (TaskState.INPUT_REQUIRED, AWAITING_NEXT_MESSAGE)


def test_what_has_a_commands_shape_gets_a_watcher_as_far_as_the_engine() -> None:
    watcher = Participant(id="wat", role="watcher")
    watched = parked().model_copy(update={"participants": (*parked().participants, watcher)})
    decision = deliver(watched, "c1", {"text": "/status"}, sender="wat", is_command=True)
    assert decision.received_as == "command"
    with pytest.raises(TaskNotFound):
        deliver(watched, "c1", {"text": "/status"}, sender="eve", is_command=True)


def test_a_task_has_a_bounded_number_of_people() -> None:
    crowd = [{"id": f"p{n}", "role": "watcher"} for n in range(100)]
    task = after(deliver(parked(), "p1", people(*crowd)))
    with pytest.raises(InvalidInput) as caught:
        deliver(task, "p2", people(*({**one, "id": f"{one['id']}x"} for one in crowd)))
    assert caught.value.field == "payload.participants"


NOTED = Verdict("p/it", "llm.invoked.pre", "slow", "", 2000)


def family(**fields: Any) -> TaskSnapshot:
    """A parked task with two open sub-tasks."""
    rows = tuple(Child(task_id=name, seq=1, state=TaskState.INPUT_REQUIRED) for name in ("k1", "k2"))
    return parked().model_copy(update={"children": rows, **fields})


def change(task_id: str, seq: int, state: TaskState = TaskState.WORKING) -> ChildChanged:
    return ChildChanged(task_id=task_id, seq=seq, state=state)
