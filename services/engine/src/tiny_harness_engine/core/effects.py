"""What a command's effects do to a task, and when they may (DESIGN: hooks, registry, commands). Pure.

Each effect is judged as if a built-in command had asked for it, whoever's body it was.
"""

from dataclasses import dataclass
from typing import Final, get_args

from tiny_harness.access import Act, may, strongest_role
from tiny_harness.contracts import Child, TaskSnapshot
from tiny_harness.effects import AddParticipant, CreateSubTask, Effect, SetEffort, SetModel
from tiny_harness.errors import CommandFailed
from tiny_harness.ext.task import Participant
from tiny_harness.settings import Effort
from tiny_harness.states import AWAITING_NEXT_MESSAGE, TaskState

EFFORTS: Final[tuple[str, ...]] = get_args(Effort)
MAX_LISTED_CHILDREN: Final = 200
"""Sub-tasks, ended ones too, that a task may list: they travel with every commit."""
MAX_PARTICIPANTS: Final = 200
"""People in roles on one task: they travel with every commit."""

_ACTS: Final[dict[type, Act]] = {
    SetModel: "control the task",
    SetEffort: "control the task",
    CreateSubTask: "control the task",
    AddParticipant: "change participants",
}


@dataclass(frozen=True, slots=True)
class Limits:
    """What the configuration allows."""

    models: tuple[str, ...]
    max_depth: int
    max_children: int


def check_effects(snapshot: TaskSnapshot, sender: str, effects: tuple[Effect, ...], limits: Limits) -> None:
    """Let effects pass, all of them.

    Raises:
        CommandFailed: One may not be: for the sender, for this task, or at all.
    """
    role = strongest_role(snapshot.participants, sender)
    for effect in effects:
        act = _ACTS[type(effect)]
        if role is None or not may(role, act):
            raise CommandFailed(f"a {role or 'stranger'} may not {act}")
        _check(snapshot, effect, limits)
    if sum(isinstance(effect, CreateSubTask) for effect in effects) > 1:
        raise CommandFailed("a command may create one sub-task")


def apply_effects(snapshot: TaskSnapshot, effects: tuple[Effect, ...], child_id: str) -> TaskSnapshot:
    """Make the task that effects lead to; they were checked before."""
    for effect in effects:
        snapshot = snapshot.model_copy(update=_change(snapshot, effect, child_id))
    return snapshot


def add_people(people: tuple[Participant, ...], added: tuple[Participant, ...]) -> tuple[Participant, ...]:
    """Put people on a task, each once in each role; who is there stays as they are."""
    everyone = {(person.id, person.role): person for person in people}
    for person in added:
        everyone.setdefault((person.id, person.role), person)
    return tuple(everyone.values())


def sub_task(parent: TaskSnapshot, task_id: str, sender: Participant, agent: Participant) -> TaskSnapshot:
    """Make a sub-task as it starts: a parked conversation with its parent's model and effort (R9.1, R9.2)."""
    return TaskSnapshot(
        task_id=task_id,
        context_id=parent.context_id,
        state=TaskState.INPUT_REQUIRED,
        sub_state=AWAITING_NEXT_MESSAGE,
        participants=(sender, agent),
        model=parent.model,
        effort=parent.effort,
        parent=parent.task_id,
        depth=parent.depth + 1,
    )


def _check(snapshot: TaskSnapshot, effect: Effect, limits: Limits) -> None:
    match effect:
        case SetModel():
            if effect.model not in limits.models:
                raise CommandFailed("there is no such model to choose")
        case SetEffort():
            if effect.effort not in EFFORTS:
                raise CommandFailed(f"an effort is one of {', '.join(EFFORTS)}")
        case CreateSubTask():
            _check_room(snapshot, limits)
        case AddParticipant():
            added = Participant(id=effect.id, role=effect.role, kind=effect.participant_kind)
            if len(add_people(snapshot.participants, (added,))) > MAX_PARTICIPANTS:
                raise CommandFailed(f"a task may have {MAX_PARTICIPANTS} participants")


def _check_room(snapshot: TaskSnapshot, limits: Limits) -> None:
    if snapshot.depth >= limits.max_depth:
        raise CommandFailed(f"a sub-task may have {limits.max_depth} tasks above it")
    if len(snapshot.unresolved) >= limits.max_children:
        raise CommandFailed(f"a task may have {limits.max_children} open sub-tasks")
    if len(snapshot.children) >= MAX_LISTED_CHILDREN:
        raise CommandFailed(f"a task may have {MAX_LISTED_CHILDREN} sub-tasks in its life")


def _change(snapshot: TaskSnapshot, effect: Effect, child_id: str) -> dict[str, object]:
    match effect:
        case SetModel():
            return {"model": effect.model}
        case SetEffort():
            return {"effort": effect.effort}
        case CreateSubTask():
            child = Child(task_id=child_id, seq=1, state=TaskState.INPUT_REQUIRED, sub_state=AWAITING_NEXT_MESSAGE)
            known = [one for one in snapshot.children if one.task_id != child_id]
            return {"children": (*known, child)}
        case AddParticipant():
            added = Participant(id=effect.id, role=effect.role, kind=effect.participant_kind)
            return {"participants": add_people(snapshot.participants, (added,))}
