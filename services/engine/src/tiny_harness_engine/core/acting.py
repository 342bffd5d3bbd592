"""Applies what the agent's intrinsic tools do to its task (DESIGN: agent core). Pure.

An act that cannot be done is a result that says so to the model; it never fails the step.
"""

import uuid
from dataclasses import dataclass, field, replace
from typing import Any, Final

from tiny_harness.contracts import Child, Input, Model, Supervision, TaskSnapshot
from tiny_harness.envelope import WorkerUpdate
from tiny_harness.errors import InvalidPlan
from tiny_harness.ext.names import EXTENSION_BASE
from tiny_harness.ext.task import AGENT_ID, Participant
from tiny_harness.states import AWAITING_ANSWER, TaskState
from tiny_harness_engine.core import acts, plan
from tiny_harness_engine.core.drafts import NewChild, NewRemote, Result
from tiny_harness_engine.core.effects import MAX_LISTED_CHILDREN, MAX_PARTICIPANTS, add_people

_CHILDREN: Final = uuid.uuid5(uuid.NAMESPACE_URL, f"{EXTENSION_BASE}/children")


class TaskLimits(Model):
    """What the configuration allows; given by the step, so that a replay knows it too."""

    max_depth: int = 5
    max_children: int = 20
    tree_room: int = 200
    """How many more tasks the tree may have, as far as the step knew."""
    agents: tuple[str, ...] = ()
    """Names of the remote agents that there are."""
    workers: tuple[str, ...] = ()
    """Participants that work on supervised tasks."""


@dataclass(frozen=True, slots=True)
class Asking:
    """A question that ends the turn."""

    words: str
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Applied:
    """The task after some acts, and what the model and others are told."""

    snapshot: TaskSnapshot
    results: tuple[Result, ...] = ()
    children: tuple[NewChild, ...] = ()
    remotes: tuple[NewRemote, ...] = ()
    asking: Asking | None = None
    update: WorkerUpdate | None = None
    """How the agent, as the task's worker, says that it stands: that ends the turn."""
    limits: TaskLimits = field(default_factory=TaskLimits)

    def told(self, call: int, text: str, *, is_error: bool = False) -> "Applied":
        """Tell the model what came of a call."""
        return replace(self, results=(*self.results, Result(call=call, text=text, is_error=is_error)))


def needs_approval(snapshot: TaskSnapshot, act: acts.Act) -> str | None:
    """Say why a person must allow an act first: a model never raises rights (DESIGN: rights that no text can give)."""
    if not isinstance(act, acts.SetParticipantRole):
        return None
    if any(person.id == act.participant and person.role == act.role for person in snapshot.participants):
        return None
    return f"The agent wants {act.participant} to take part in this task as {act.role}."


def apply_act(applied: Applied, call: int, act: acts.Act) -> Applied:
    """Apply one act; what was applied before stands."""
    match act:
        case acts.CreatePlan() | acts.CompleteStep():
            return _plan(applied, call, act)
        case acts.SpawnSubtask():
            return _spawn(applied, call, act)
        case acts.CreateTaskForParticipant():
            return _create_task(applied, call, act)
        case acts.AskParticipant():
            asking = Asking(act.question, act.choices)
            told = applied.told(call, "The question was asked. The answer is the next message.")
            return replace(told, asking=asking)
        case acts.SetParticipantRole():
            return _set_role(applied, call, act)
        case acts.TaskUpdate():
            return _say_how_it_stands(applied, call, act)
        case _:
            return applied.told(call, "This cannot be done here.", is_error=True)


def child_id(task_id: str, turn: int, step: int, call: int) -> str:
    """Name the sub-task that a call makes: the same on every attempt."""
    return str(uuid.uuid5(_CHILDREN, f"{task_id}:{turn}:{step}:{call}"))


def _plan(applied: Applied, call: int, act: acts.CreatePlan | acts.CompleteStep) -> Applied:
    before = applied.snapshot.plan
    try:
        if isinstance(act, acts.CreatePlan):
            after = plan.create_plan(act.steps, before)
        elif before is None:
            return applied.told(call, "There is no plan yet: make one with create_plan.", is_error=True)
        else:
            after = plan.complete_step(before, act.output, act.step_id)
    except InvalidPlan as error:
        return applied.told(call, f"The plan stays as it is: {error}.", is_error=True)
    current = plan.current_step(after)
    done, total = plan.progress(after)
    active = f"The active step is {current.id}." if current else "All steps are done."
    changed = applied.snapshot.model_copy(update={"plan": after})
    return replace(applied, snapshot=changed).told(call, f"{done} of {total} steps are done. {active}")


def _spawn(applied: Applied, call: int, act: acts.SpawnSubtask) -> Applied:
    if act.agent is not None:
        return _spawn_elsewhere(applied, call, act, act.agent)
    task = applied.snapshot
    people = tuple(person for person in task.participants if person.role in ("reporter", "admin"))
    agent = Participant(id=AGENT_ID, kind="agent", role="assignee")
    child = _child(task, child_id(task.task_id, task.turn, task.step, call), (*people, agent))
    return _start(applied, call, child, act.goal, act.description, act.acceptance_criteria)


def _spawn_elsewhere(applied: Applied, call: int, act: acts.SpawnSubtask, agent: str) -> Applied:
    if agent not in applied.limits.agents:
        known = ", ".join(applied.limits.agents) or "none"
        return applied.told(call, f"There is no agent {agent}. There are: {known}.", is_error=True)
    task = applied.snapshot
    row = Child(
        task_id=child_id(task.task_id, task.turn, task.step, call),
        state=TaskState.SUBMITTED,
        agent=agent,
        origin=(task.turn, task.step, call),
    )
    new = NewRemote(child=row, goal=act.goal, description=act.description, acceptance_criteria=act.acceptance_criteria)
    added = _add_child(applied, call, row)
    return added if row not in added.snapshot.children else replace(added, remotes=(*applied.remotes, new))


def _create_task(applied: Applied, call: int, act: acts.CreateTaskForParticipant) -> Applied:
    task = applied.snapshot
    known = next((person for person in task.participants if person.id == act.participant), None)
    if known is None or known.id == AGENT_ID:
        return applied.told(call, "Nobody of that id can be given a task here.", is_error=True)
    agent = Participant(id=AGENT_ID, kind="agent", role="reporter")
    assignee = Participant(id=known.id, kind=known.kind, role="assignee", display_name=known.display_name)
    waits: dict[str, Any] = {"state": TaskState.INPUT_REQUIRED, "sub_state": AWAITING_ANSWER}
    if known.id in applied.limits.workers:
        supervised = Supervision(worker=known.id)
        waits = {"lifecycle": "supervised", "state": TaskState.SUBMITTED, "supervision": supervised}
        waits |= {"turn": 0, "step": 0, "reading": ()}
    child = _child(task, child_id(task.task_id, task.turn, task.step, call), (agent, assignee)).model_copy(update=waits)
    return _start(applied, call, child, act.goal, act.description, act.acceptance_criteria)


def _say_how_it_stands(applied: Applied, call: int, act: acts.TaskUpdate) -> Applied:
    task = applied.snapshot
    if task.supervision is None or task.supervision.worker != AGENT_ID:
        return applied.told(call, "This task has no worker: your answer is enough.", is_error=True)
    if act.status == "done" and task.unresolved:
        ids = ", ".join(task.unresolved)
        return applied.told(call, f"It is not done: its sub-tasks are still open: {ids}.", is_error=True)
    update = WorkerUpdate(status=act.status, summary=act.summary)
    return replace(applied, update=update).told(call, f"The task is noted as {act.status}.")


def _start(
    applied: Applied, call: int, child: TaskSnapshot, goal: str, description: str, criteria: tuple[str, ...]
) -> Applied:
    row = Child(task_id=child.task_id, seq=1, state=child.state, sub_state=child.sub_state)
    new = NewChild(snapshot=child, goal=goal, description=description, acceptance_criteria=criteria)
    added = _add_child(applied, call, row)
    return added if row not in added.snapshot.children else replace(added, children=(*applied.children, new))


def _add_child(applied: Applied, call: int, row: Child) -> Applied:
    """Put a sub-task's row on the task, if there is room for it."""
    refusal = _no_room(applied)
    if refusal is not None:
        return applied.told(call, refusal, is_error=True)
    task = applied.snapshot
    linked = plan.link_task(task.plan, row.task_id) if task.plan else None
    after = task.model_copy(update={"children": (*task.children, row), "plan": linked})
    return replace(applied, snapshot=after).told(
        call, f"Sub-task {row.task_id} has started. You are told when it ends."
    )


def _no_room(applied: Applied) -> str | None:
    task, limits = applied.snapshot, applied.limits
    if task.depth >= limits.max_depth:
        return f"No sub-task was started: it may have {limits.max_depth} tasks above it."
    if len(task.unresolved) >= limits.max_children:
        return f"No sub-task was started: {limits.max_children} are open already. Wait until one has ended."
    if len(applied.children) + len(applied.remotes) >= limits.tree_room:
        return "No sub-task was started: this task and its relatives are as many as they may be."
    if len(task.children) >= MAX_LISTED_CHILDREN:
        return f"No sub-task was started: a task may have {MAX_LISTED_CHILDREN} in its life."
    return None


def _child(task: TaskSnapshot, task_id: str, people: tuple[Participant, ...]) -> TaskSnapshot:
    """Make a delegated sub-task as it starts: with its brief to be read, and its parent's model and effort."""
    return TaskSnapshot(
        task_id=task_id,
        context_id=task.context_id,
        lifecycle="delegated",
        state=TaskState.WORKING,
        turn=1,
        step=1,
        reading=(Input(seq=1, message_id=brief_id(task_id)),),
        participants=people,
        model=task.model,
        effort=task.effort,
        parent=task.task_id,
        depth=task.depth + 1,
    )


def brief_id(task_id: str) -> str:
    """Name the message that a sub-task starts with."""
    return f"brief:{task_id}"


def _set_role(applied: Applied, call: int, act: acts.SetParticipantRole) -> Applied:
    task = applied.snapshot
    known = next((person for person in task.participants if person.id == act.participant), None)
    added = Participant(id=act.participant, kind=known.kind if known else "human", role=act.role)
    people = add_people(task.participants, (added,))
    if len(people) > MAX_PARTICIPANTS:
        return applied.told(call, f"A task may have {MAX_PARTICIPANTS} participants.", is_error=True)
    after = task.model_copy(update={"participants": people})
    return replace(applied, snapshot=after).told(call, f"{act.participant} takes part as {act.role} now.")
