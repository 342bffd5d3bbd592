"""What a command's effects may do, and what they do."""

from typing import Any

import pytest

from tiny_harness.access import may
from tiny_harness.contracts import Child, TaskSnapshot
from tiny_harness.effects import AddParticipant, CreateSubTask, Effect, SetEffort, SetModel
from tiny_harness.errors import CommandFailed
from tiny_harness.ext.task import AGENT_ID, Participant, Role
from tiny_harness.states import AWAITING_NEXT_MESSAGE, TaskState
from tiny_harness_engine.core import effects
from tiny_harness_engine.core.effects import Limits, add_people, apply_effects, check_effects, sub_task

LIMITS = Limits(models=("small", "big"), max_depth=2, max_children=2)
ROLES: dict[str, Role] = {"ada": "admin", "ann": "reporter", "al": "assignee", "wanda": "watcher"}

CONTROLS: list[Effect] = [SetModel(model="big"), SetEffort(effort="high"), CreateSubTask(goal="look")]
PEOPLE: list[Effect] = [AddParticipant(id="bob", role="watcher"), AddParticipant(id="bob", role="admin")]


def task(**fields: Any) -> TaskSnapshot:
    people = tuple(Participant(id=name, role=role) for name, role in ROLES.items())
    return TaskSnapshot(
        task_id="t",
        context_id="c",
        state=TaskState.INPUT_REQUIRED,
        sub_state=AWAITING_NEXT_MESSAGE,
        participants=people,
    ).model_copy(update=fields)


def children(count: int, state: TaskState = TaskState.WORKING) -> tuple[Child, ...]:
    return tuple(Child(task_id=f"k{n}", seq=1, state=state) for n in range(count))


@pytest.mark.parametrize("who", [*ROLES, "eve", ""])
@pytest.mark.parametrize("effect", [*CONTROLS, *PEOPLE], ids=lambda effect: effect.kind)
def test_an_effect_is_for_those_whose_role_may_do_it(effect: Effect, who: str) -> None:
    act = "change participants" if effect in PEOPLE else "control the task"
    if who in ROLES and may(ROLES[who], act):
        check_effects(task(), who, (effect,), LIMITS)
        return
    with pytest.raises(CommandFailed) as caught:
        check_effects(task(), who, (effect,), LIMITS)
    assert ROLES.get(who, "stranger") in str(caught.value)


@pytest.mark.parametrize(
    ("snapshot", "wanted"),
    [
        (task(), (SetModel(model="huge"),)),
        (task(), (SetModel(model=""),)),
        (task(), (SetEffort(effort="maximum"),)),
        (task(), (SetEffort(effort="HIGH"),)),
        (task(), (CreateSubTask(goal="a"), CreateSubTask(goal="b"))),
        (task(depth=2), (CreateSubTask(goal="a"),)),
        (task(children=children(2)), (CreateSubTask(goal="a"),)),
        (
            task(children=children(effects.MAX_LISTED_CHILDREN, TaskState.COMPLETED)),
            (CreateSubTask(goal="a"),),
        ),
        (task(), (SetEffort(effort="high"), SetModel(model="huge"))),
    ],
)
def test_what_the_configuration_does_not_allow_is_refused_whole(
    snapshot: TaskSnapshot, wanted: tuple[Effect, ...]
) -> None:
    with pytest.raises(CommandFailed):
        check_effects(snapshot, "ada", wanted, LIMITS)


def test_room_is_for_open_sub_tasks_and_depth_for_those_above() -> None:
    check_effects(task(children=children(50, TaskState.COMPLETED), depth=1), "ann", (CreateSubTask(goal="a"),), LIMITS)


def test_a_task_has_a_bounded_number_of_people_and_who_is_there_counts_once() -> None:
    crowd = tuple(Participant(id=f"p{n}", role="watcher") for n in range(effects.MAX_PARTICIPANTS - len(ROLES)))
    full = task(participants=(*task().participants, *crowd))
    check_effects(full, "ann", (AddParticipant(id="p0", role="watcher"),), LIMITS)
    with pytest.raises(CommandFailed):
        check_effects(full, "ann", (AddParticipant(id="bob", role="watcher"),), LIMITS)


def test_no_effects_are_for_everybody() -> None:
    check_effects(task(), "eve", (), LIMITS)


def test_effects_change_what_they_name_and_nothing_else() -> None:
    wanted: tuple[Effect, ...] = (*CONTROLS, PEOPLE[0])
    changed = apply_effects(task(), wanted, "k")
    row = Child(task_id="k", seq=1, state=TaskState.INPUT_REQUIRED, sub_state=AWAITING_NEXT_MESSAGE)
    expected = {
        "model": "big",
        "effort": "high",
        "children": (row,),
        "participants": (*task().participants, Participant(id="bob", role="watcher")),
    }
    assert changed == task(**expected)
    assert apply_effects(task(), (), "k") == task()


def test_the_same_sub_task_is_listed_once() -> None:
    once = apply_effects(task(), (CreateSubTask(goal="a"),), "k")
    assert apply_effects(once, (CreateSubTask(goal="a"),), "k") == once


def test_somebody_may_stand_in_several_roles_and_in_each_once() -> None:
    bob = Participant(id="bob", role="watcher", display_name="Bob")
    people = add_people((bob,), (Participant(id="bob", role="watcher"), Participant(id="bob", role="admin")))
    assert people == (bob, Participant(id="bob", role="admin"))


def test_a_sub_task_is_a_parked_conversation_that_inherits_model_and_effort() -> None:
    sender, agent = Participant(id="al", role="reporter"), Participant(id=AGENT_ID, kind="agent", role="assignee")
    child = sub_task(task(model="big", effort="low", depth=1, turn=7, children=children(1)), "k", sender, agent)
    assert child == TaskSnapshot(
        task_id="k",
        context_id="c",
        state=TaskState.INPUT_REQUIRED,
        sub_state=AWAITING_NEXT_MESSAGE,
        participants=(sender, agent),
        model="big",
        effort="low",
        parent="t",
        depth=2,
    )
