"""What may be done with a plan: made, gone on with, never broken (DESIGN: agent core). Pure.

A plan is a directed acyclic graph. One step is active, the first in the order of the plan whose dependencies are done;
none is when all are done. Every function answers a plan that `check_plan` accepts, or raises.
"""

from collections.abc import Iterable, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from tiny_harness.errors import InvalidPlan
from tiny_harness.ext.plan import (
    MAX_DESCRIPTION_CHARS,
    MAX_LINKED_TASKS,
    MAX_NAME_CHARS,
    MAX_OUTPUT_CHARS,
    MAX_STEPS,
    Plan,
    PlanStep,
    StepId,
)

_SHOWN: Final = 5
"""Ids that an error names at most."""


class PlannedStep(BaseModel):
    """One step, as it is planned."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: StepId = Field(description="Short id of the step, unique within the plan, such as `check-order`.")
    name: str = Field(min_length=1, max_length=MAX_NAME_CHARS, description="What the step does, in a few words.")
    description: str = Field(
        default="",
        max_length=MAX_DESCRIPTION_CHARS,
        description="What has to be done, as far as the name does not say.",
    )
    depends_on: tuple[StepId, ...] = Field(
        default=(), max_length=MAX_STEPS, description="Ids of the steps that must be done before this one can start."
    )


def create_plan(steps: Sequence[PlannedStep], previous: Plan | None = None) -> Plan:
    """Make a plan.

    Args:
        steps: In the order in which they are to be done, as far as their dependencies leave it open.
        previous: The plan that it replaces, if there is one. A step that keeps its id keeps its linked tasks; if it was
            done, it still is, provided that all that it now depends on is.

    Raises:
        InvalidPlan: It has a cycle, an id twice, a dependency that is no step, or too many or no steps.
    """
    order = _order([(step.id, step.depends_on) for step in steps])
    before = {step.id: step for step in previous.steps} if previous else {}
    planned = {step.id: step for step in steps}
    done: set[str] = set()
    for step_id in order:
        kept = before.get(step_id)
        if kept is not None and kept.status == "done" and done.issuperset(planned[step_id].depends_on):
            done.add(step_id)
    return _activated(_step(step, before.get(step.id), step.id in done) for step in steps)


def check_plan(plan: Plan) -> Plan:
    """Accept a plan that somebody else changed, such as a hook: its graph, and that what is done could be.

    Returns:
        It, with the right step active.

    Raises:
        InvalidPlan: It is none.
    """
    _order([(step.id, step.depends_on) for step in plan.steps])
    done = _done(plan)
    for step in plan.steps:
        if step.id in done:
            _demand_ready(step, done)
    return _activated(plan.steps)


def complete_step(plan: Plan, output: str, step_id: str | None = None) -> Plan:
    """Mark a step as done, and make the next one active.

    Args:
        plan: The plan.
        output: What came of the step.
        step_id: The step; by default the active one. Another one may be done before it if it depends on nothing open.

    Raises:
        InvalidPlan: There is no such step, it is done already or cannot be yet, or the output is too long.
    """
    step = _find(plan, step_id)
    if step.status == "done":
        raise InvalidPlan(f"the step {step.id} is done already")
    if len(output) > MAX_OUTPUT_CHARS:
        raise InvalidPlan(f"an output has at most {MAX_OUTPUT_CHARS} characters, this one has {len(output)}")
    _demand_ready(step, _done(plan))
    done = step.model_copy(update={"status": "done", "output": output})
    return _activated(done if each.id == step.id else each for each in plan.steps)


def link_task(plan: Plan, task_id: str) -> Plan:
    """Link a sub-task from the active step; a plan that is done stays as it is."""
    current = current_step(plan)
    if current is None or task_id in current.linked_tasks or len(current.linked_tasks) >= MAX_LINKED_TASKS:
        return plan
    linked = current.model_copy(update={"linked_tasks": (*current.linked_tasks, task_id)})
    return Plan(steps=tuple(linked if step.id == current.id else step for step in plan.steps))


def current_step(plan: Plan) -> PlanStep | None:
    """The active step; `None` when all are done."""
    return next((step for step in plan.steps if step.status == "active"), None)


def progress(plan: Plan | None) -> tuple[int, int]:
    """Count the steps: those that are done, and all. No plan has none."""
    return (len(_done(plan)), len(plan.steps)) if plan else (0, 0)


def _order(graph: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
    """Put the ids of a graph in an order in which dependencies come first; refuse what has none."""
    if not 0 < len(graph) <= MAX_STEPS:
        raise InvalidPlan(f"a plan has 1 to {MAX_STEPS} steps, this one has {len(graph)}")
    ids = [step_id for step_id, _ in graph]
    if twins := sorted({step_id for step_id in ids if ids.count(step_id) > 1}):
        raise InvalidPlan(f"every step needs an id of its own; these are there twice: {_listed(twins)}")
    if unknown := sorted({each for _, needed in graph for each in needed} - set(ids)):
        raise InvalidPlan(f"steps depend on what is no step of the plan: {_listed(unknown)}")
    try:
        return list(TopologicalSorter(dict(graph)).static_order())
    except CycleError as error:
        # Each element of the error's list is one that the next depends on; we say it the way that plans do.
        cycle = tuple(reversed(error.args[1]))
        raise InvalidPlan(f"the steps wait for each other: {' needs '.join(cycle)}", cycle) from error


def _step(planned: PlannedStep, before: PlanStep | None, is_done: bool) -> PlanStep:
    return PlanStep(
        **planned.model_dump(),
        status="done" if is_done else "pending",
        output=before.output if before and is_done else None,
        linked_tasks=before.linked_tasks if before else (),
    )


def _activated(steps: Iterable[PlanStep]) -> Plan:
    """Make a plan of steps, with the first one active that nothing holds up."""
    found = list(steps)
    done = {step.id for step in found if step.status == "done"}
    current = next((step.id for step in found if step.id not in done and done.issuperset(step.depends_on)), None)
    return Plan(
        steps=tuple(
            step
            if step.id in done
            else step.model_copy(update={"status": "active" if step.id == current else "pending"})
            for step in found
        )
    )


def _find(plan: Plan, step_id: str | None) -> PlanStep:
    if step_id is None:
        current = current_step(plan)
        if current is None:
            raise InvalidPlan("all steps of the plan are done")
        return current
    found = next((step for step in plan.steps if step.id == step_id), None)
    if found is None:
        raise InvalidPlan(f"the plan has no step {step_id[:64]!r}; it has {_listed([s.id for s in plan.steps])}")
    return found


def _demand_ready(step: PlanStep, done: set[str]) -> None:
    if waits := [needed for needed in step.depends_on if needed not in done]:
        raise InvalidPlan(f"the step {step.id} cannot be done before {_listed(waits)}")


def _done(plan: Plan) -> set[str]:
    return {step.id for step in plan.steps if step.status == "done"}


def _listed(ids: Sequence[str]) -> str:
    more = f" and {len(ids) - _SHOWN} more" if len(ids) > _SHOWN else ""
    return ", ".join(ids[:_SHOWN]) + more
