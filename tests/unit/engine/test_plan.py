"""Plans: what they may be, and how they go on."""

import random
from itertools import pairwise

import pytest
from pydantic import ValidationError

from tiny_harness.contracts import TaskSnapshot
from tiny_harness.errors import InvalidPlan
from tiny_harness.ext.plan import MAX_LINKED_TASKS, MAX_OUTPUT_CHARS, MAX_STEPS, Plan, PlanStep
from tiny_harness.ext.task import TaskData, TaskText
from tiny_harness.states import TaskState
from tiny_harness.task_data import task_data
from tiny_harness_engine.core.plan import (
    PlannedStep,
    check_plan,
    complete_step,
    create_plan,
    current_step,
    link_task,
    progress,
)


def steps(**graph: str) -> list[PlannedStep]:
    """Write a graph as `name="dependency dependency"`."""
    return [PlannedStep(id=name, name=name.title(), depends_on=tuple(needed.split())) for name, needed in graph.items()]


def statuses(plan: Plan) -> dict[str, str]:
    return {step.id: step.status for step in plan.steps}


def test_a_plan_starts_with_its_first_step_that_waits_for_nothing() -> None:
    plan = create_plan(steps(pack="buy", buy="", pay="buy"))
    assert statuses(plan) == {"pack": "pending", "buy": "active", "pay": "pending"}
    assert progress(plan) == (0, 3)


def test_no_plan_has_no_progress() -> None:
    assert progress(None) == (0, 0)


def test_completing_the_active_step_activates_the_next_one_in_the_order_of_the_plan() -> None:
    plan = complete_step(create_plan(steps(pack="buy", buy="", pay="buy")), "two apples")
    assert statuses(plan) == {"pack": "active", "buy": "done", "pay": "pending"}
    assert plan.steps[1].output == "two apples"
    assert progress(plan) == (1, 3)


def test_another_step_that_waits_for_nothing_may_be_done_first() -> None:
    plan = complete_step(create_plan(steps(a="", b="", c="a b")), "b done", "b")
    assert statuses(plan) == {"a": "active", "b": "done", "c": "pending"}


def test_a_plan_whose_steps_are_all_done_has_no_current_step() -> None:
    plan = complete_step(create_plan(steps(a="")), "")
    assert current_step(plan) is None
    assert progress(plan) == (1, 1)
    with pytest.raises(InvalidPlan):
        complete_step(plan, "again")


@pytest.mark.parametrize(
    ("step_id", "words"), [("b", "before a"), ("zz", "has no step"), ("done", "done already")], ids=str
)
def test_a_step_that_cannot_be_done_is_refused(step_id: str, words: str) -> None:
    plan = complete_step(create_plan(steps(a="", b="a", done="")), "", "done")
    with pytest.raises(InvalidPlan, match=words):
        complete_step(plan, "output", step_id)


def test_an_output_that_is_too_long_is_refused() -> None:
    plan = create_plan(steps(a=""))
    with pytest.raises(InvalidPlan):
        complete_step(plan, "x" * (MAX_OUTPUT_CHARS + 1))
    assert complete_step(plan, "x" * MAX_OUTPUT_CHARS).steps[0].status == "done"


def test_a_cycle_is_named_in_the_direction_of_the_dependencies() -> None:
    with pytest.raises(InvalidPlan) as caught:
        create_plan(steps(start="", a="b start", b="c", c="a"))
    cycle = caught.value.cycle
    assert cycle[0] == cycle[-1]
    assert set(pairwise(cycle)) == {("a", "b"), ("b", "c"), ("c", "a")}
    assert all(name in str(caught.value) for name in "abc")
    assert caught.value.code == "invalid_plan"


def test_a_step_that_waits_for_itself_is_a_cycle() -> None:
    with pytest.raises(InvalidPlan) as caught:
        create_plan(steps(a="a"))
    assert caught.value.cycle == ("a", "a")


def test_an_unknown_dependency_is_named() -> None:
    with pytest.raises(InvalidPlan, match="ghost") as caught:
        create_plan(steps(a="ghost"))
    assert caught.value.cycle == ()


def test_two_steps_may_not_share_an_id() -> None:
    twice = [*steps(a=""), *steps(a="")]
    with pytest.raises(InvalidPlan, match="twice: a"):
        create_plan(twice)


@pytest.mark.parametrize("count", [0, MAX_STEPS + 1])
def test_a_plan_has_a_bounded_number_of_steps(count: int) -> None:
    with pytest.raises(InvalidPlan):
        create_plan([PlannedStep(id=f"s{number}", name="s") for number in range(count)])


@pytest.mark.parametrize("step_id", ["", "a b", "-a", "é", "x" * 65, "a\n"])
def test_ids_are_plain(step_id: str) -> None:
    with pytest.raises(ValidationError):
        PlannedStep(id=step_id, name="n")


def test_a_sub_task_is_linked_from_the_current_step_once() -> None:
    plan = link_task(link_task(create_plan(steps(a="", b="a")), "t1"), "t1")
    assert [step.linked_tasks for step in plan.steps] == [("t1",), ()]
    moved = link_task(complete_step(plan, ""), "t2")
    assert [step.linked_tasks for step in moved.steps] == [("t1",), ("t2",)]


def test_links_are_bounded_and_a_finished_plan_takes_none() -> None:
    plan = create_plan(steps(a=""))
    for number in range(MAX_LINKED_TASKS + 5):
        plan = link_task(plan, f"t{number}")
    assert len(plan.steps[0].linked_tasks) == MAX_LINKED_TASKS
    done = complete_step(plan, "")
    assert link_task(done, "late") == done


def test_a_new_plan_keeps_what_was_done_under_the_same_id() -> None:
    old = complete_step(link_task(create_plan(steps(a="", b="a", c="b")), "t1"), "from a")
    new = create_plan(steps(c="a", a="", d=""), old)
    assert statuses(new) == {"c": "active", "a": "done", "d": "pending"}
    assert (new.steps[1].output, new.steps[1].linked_tasks) == ("from a", ("t1",))


def test_a_done_step_that_now_waits_for_an_open_one_is_open_again() -> None:
    old = complete_step(link_task(create_plan(steps(a="")), "t1"), "from a")
    new = create_plan(steps(a="first", first=""), old)
    assert statuses(new) == {"a": "pending", "first": "active"}
    assert (new.steps[0].output, new.steps[0].linked_tasks) == (None, ("t1",))


def test_a_plan_that_a_hook_changed_is_checked_and_its_active_step_set_right() -> None:
    a = PlanStep(id="a", name="A", status="done", output="x")
    b = PlanStep(id="b", name="B", depends_on=("a",), status="pending")
    c = PlanStep(id="c", name="C", depends_on=("b",), status="active")
    assert statuses(check_plan(Plan(steps=(a, b, c)))) == {"a": "done", "b": "active", "c": "pending"}
    with pytest.raises(InvalidPlan, match="before b"):
        check_plan(Plan(steps=(a, b, c.model_copy(update={"status": "done"}))))
    with pytest.raises(InvalidPlan) as caught:
        check_plan(Plan(steps=(a, b.model_copy(update={"depends_on": ("c",)}), c)))
    assert set(caught.value.cycle) == {"b", "c"}


@pytest.mark.parametrize("seed", range(60))
def test_any_acyclic_plan_runs_to_its_end_and_is_valid_all_the_way(seed: int) -> None:
    chance = random.Random(seed)
    names = [f"s{number}" for number in range(chance.randint(1, MAX_STEPS))]
    graph = [
        PlannedStep(
            id=name, name=name, depends_on=tuple(chance.sample(names[:place], chance.randint(0, min(place, 4))))
        )
        for place, name in enumerate(names)
    ]
    chance.shuffle(graph)
    plan = create_plan(graph)
    for count in range(len(names)):
        assert progress(plan) == (count, len(names))
        done = {step.id for step in plan.steps if step.status == "done"}
        assert all(done.issuperset(step.depends_on) for step in plan.steps if step.status != "pending")
        assert [step.status for step in plan.steps].count("active") == 1
        ready = [step.id for step in plan.steps if step.id not in done and done.issuperset(step.depends_on)]
        assert current_step(plan) == next(step for step in plan.steps if step.id == ready[0])
        before = plan
        plan = complete_step(plan, f"output {count}", chance.choice([None, *ready]))
        assert check_plan(plan) == plan
        assert Plan.model_validate_json(plan.model_dump_json()) == plan
        assert before != plan
    assert current_step(plan) is None


@pytest.mark.parametrize("seed", range(40))
def test_any_cycle_is_found_and_named_truly(seed: int) -> None:
    chance = random.Random(seed)
    names = [f"s{number}" for number in range(chance.randint(2, MAX_STEPS))]
    graph = {name: set(chance.sample(names[:place], min(place, 2))) for place, name in enumerate(names)}
    ring = chance.sample(names, chance.randint(2, len(names)))
    for one, other in zip(ring, [*ring[1:], ring[0]], strict=True):
        graph[one].add(other)
    planned = [PlannedStep(id=name, name=name, depends_on=tuple(sorted(needed))) for name, needed in graph.items()]
    with pytest.raises(InvalidPlan) as caught:
        create_plan(planned)
    cycle = caught.value.cycle
    assert cycle[0] == cycle[-1]
    assert all(needed in graph[name] for name, needed in pairwise(cycle))


def test_the_task_extension_carries_the_plan() -> None:
    plan = complete_step(create_plan(steps(a="", b="a")), "done it")
    snapshot = TaskSnapshot(task_id="t", context_id="c", state=TaskState.WORKING)
    data = task_data(snapshot.model_copy(update={"plan": plan}), TaskText(name="n"))
    assert data["plan"]["steps"][0] == {
        "id": "a",
        "name": "A",
        "description": "",
        "depends_on": [],
        "status": "done",
        "output": "done it",
        "linked_tasks": [],
    }
    assert TaskData.model_validate(data).plan == plan
    assert "plan" not in task_data(snapshot, TaskText(name="n"))
