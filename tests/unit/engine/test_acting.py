"""What the agent's intrinsic tools do to its task."""

from typing import Any

import pytest

from tiny_harness.contracts import Child, Input, Supervision, TaskSnapshot
from tiny_harness.ext.task import AGENT_ID, Participant
from tiny_harness.states import AWAITING_ANSWER, TaskState
from tiny_harness_engine.core import acts
from tiny_harness_engine.core.acting import Applied, TaskLimits, apply_act, child_id, needs_approval
from tiny_harness_engine.core.acts import Act
from tiny_harness_engine.core.plan import PlannedStep


def task(**more: Any) -> TaskSnapshot:
    people = (
        Participant(id="ann", role="reporter"),
        Participant(id="bob", role="watcher"),
        Participant(id=AGENT_ID, kind="agent", role="assignee"),
    )
    fields = {"task_id": "t", "context_id": "c", "state": TaskState.WORKING, "turn": 2, "step": 3, **more}
    return TaskSnapshot(**{"participants": people, "reading": (Input(seq=1, message_id="m"),), **fields})


def apply(act: Act, snapshot: TaskSnapshot | None = None, limits: TaskLimits | None = None) -> Applied:
    return apply_act(Applied(snapshot or task(), limits=limits or TaskLimits()), 0, act)


PLAN = acts.CreatePlan(steps=(PlannedStep(id="a", name="A"), PlannedStep(id="b", name="B", depends_on=("a",))))


def test_a_plan_is_made_and_gone_on_with() -> None:
    made = apply(PLAN)
    done = apply(acts.CompleteStep(output="x"), made.snapshot)
    assert done.snapshot.plan is not None
    assert [step.status for step in done.snapshot.plan.steps] == ["done", "active"]
    assert "1 of 2" in done.results[0].text


def test_a_step_without_a_plan_is_a_mistake_that_changes_nothing() -> None:
    applied = apply(acts.CompleteStep(output="x"))
    assert applied.results[0].is_error
    assert applied.snapshot == task()


def test_a_sub_task_inherits_and_is_linked_from_the_active_step() -> None:
    planned = apply(PLAN, task(model="big", effort="high", depth=1)).snapshot
    applied = apply(acts.SpawnSubtask(goal="look"), planned)
    [new] = applied.children
    child = new.snapshot
    assert child.task_id == child_id("t", 2, 3, 0)
    assert (child.lifecycle, child.parent, child.depth, child.model, child.effort) == (
        "delegated",
        "t",
        2,
        "big",
        "high",
    )
    assert [(p.id, p.role) for p in child.participants] == [("ann", "reporter"), (AGENT_ID, "assignee")]
    assert [row.task_id for row in applied.snapshot.children] == [child.task_id]
    assert applied.snapshot.plan is not None
    assert applied.snapshot.plan.steps[0].linked_tasks == (child.task_id,)


@pytest.mark.parametrize(
    ("snapshot", "limits"),
    [
        (task(depth=2), TaskLimits(max_depth=2)),
        (task(children=(Child(task_id="k", state=TaskState.WORKING),)), TaskLimits(max_children=1)),
        (task(children=tuple(Child(task_id=f"k{n}", state=TaskState.COMPLETED) for n in range(200))), TaskLimits()),
    ],
    ids=["depth", "open ones", "a whole life"],
)
def test_sub_tasks_are_limited(snapshot: TaskSnapshot, limits: TaskLimits) -> None:
    applied = apply(acts.SpawnSubtask(goal="look"), snapshot, limits)
    assert applied.results[0].is_error
    assert (applied.children, applied.snapshot) == ((), snapshot)


def test_a_task_for_a_participant_is_theirs_and_waits_for_them() -> None:
    [new] = apply(acts.CreateTaskForParticipant(participant="bob", goal="sign")).children
    assert [(p.id, p.role) for p in new.snapshot.participants] == [(AGENT_ID, "reporter"), ("bob", "assignee")]
    assert new.snapshot.sub_state == AWAITING_ANSWER


@pytest.mark.parametrize("participant", ["eve", AGENT_ID])
def test_whoever_is_not_on_the_task_gets_none(participant: str) -> None:
    applied = apply(acts.CreateTaskForParticipant(participant=participant, goal="sign"))
    assert applied.results[0].is_error
    assert applied.children == ()


def test_a_role_needs_a_persons_approval_unless_it_is_held() -> None:
    assert needs_approval(task(), acts.SetParticipantRole(participant="eve", role="watcher"))
    assert needs_approval(task(), acts.SetParticipantRole(participant="bob", role="reporter"))
    assert needs_approval(task(), acts.SetParticipantRole(participant="bob", role="watcher")) is None
    assert needs_approval(task(), acts.SpawnSubtask(goal="x")) is None


def test_a_question_is_asked_after_everything_else() -> None:
    applied = apply(acts.AskParticipant(question="Which?", choices=("1", "2")))
    assert applied.asking is not None
    assert (applied.asking.words, applied.asking.choices) == ("Which?", ("1", "2"))


def test_a_task_for_a_participant_with_a_worker_record_is_supervised() -> None:
    applied = apply(acts.CreateTaskForParticipant(participant="bob", goal="dig"), limits=TaskLimits(workers=("bob",)))
    [new] = applied.children
    child = new.snapshot
    assert (child.lifecycle, child.state, child.turn, child.reading) == ("supervised", TaskState.SUBMITTED, 0, ())
    assert child.supervision == Supervision(worker="bob")


def test_only_the_worker_of_a_supervised_task_says_how_it_stands() -> None:
    update = acts.TaskUpdate(status="done", summary="All sheep are counted.")
    assert apply(update).results[0].is_error
    assert apply(update, task(supervision=Supervision(worker="bob"))).results[0].is_error
    applied = apply(update, task(supervision=Supervision(worker=AGENT_ID)))
    assert applied.update is not None
    assert applied.update.summary == "All sheep are counted."


def test_a_task_with_open_sub_tasks_is_not_done() -> None:
    child = Child(task_id="child", state=TaskState.WORKING)
    snapshot = task(supervision=Supervision(worker=AGENT_ID), children=(child,))
    applied = apply(acts.TaskUpdate(status="done", summary="So."), snapshot)
    assert applied.update is None
    assert "child" in applied.results[0].text
    assert apply(acts.TaskUpdate(status="failed", summary="So."), snapshot).update is not None
