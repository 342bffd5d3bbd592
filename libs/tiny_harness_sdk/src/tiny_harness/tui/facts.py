"""The lines of the side panel's tabs. Pure."""

from tiny_harness.client import TaskView
from tiny_harness.ext.plan import PlanStep
from tiny_harness.ext.supervision import marks
from tiny_harness.states import TaskState, describe
from tiny_harness.tui.printable import one_line, printable
from tiny_harness.tui.room import Room, title
from tiny_harness.tui.telling import MARKS


def task_facts(room: Room) -> list[str]:
    """Say what the task is, who is on it and what it has used."""
    view = room.view
    if view is None:
        return ["No task yet: the first message starts one."]
    facts = [
        ("Name", title(view)),
        ("State", room.words),
        ("Id", one_line(view.task_id)),
        ("Context", one_line(view.context_id)),
        ("Model", one_line(view.model or "the default")),
        ("Effort", one_line(view.effort or "the default")),
        *_used(view),
        *(("Part of", one_line(parent)) for parent in view.parent_tasks),
        *(
            (person.role.capitalize(), one_line(f"{person.display_name or person.id} ({person.kind})"))
            for person in view.participants
        ),
    ]
    facts += _supervised(view)
    return [f"{name}: {fact}" for name, fact in facts]


def _supervised(view: TaskView) -> list[tuple[str, str]]:
    told = view.supervision
    if told is None:
        return []
    facts = [("Worker", one_line(told.worker)), ("Said last", one_line(told.last_worker_line or ""))]
    facts += [("Supervision", words) for words in marks(told)]
    return [(name, fact) for name, fact in facts if fact]


def _used(view: TaskView) -> list[tuple[str, str]]:
    used = view.usage
    if used is None:
        return []
    facts = [("Model calls", f"{used.calls:,}"), ("Tokens in", f"{used.input_tokens:,}")]
    if used.cached_tokens:
        facts.append(("of them cached", f"{used.cached_tokens:,}"))
    facts.append(("Tokens out", f"{used.output_tokens:,}"))
    if used.cost is not None:
        facts.append(("Money", f"{used.cost:f}"))
    return facts + [("Without a price", one_line(model)) for model in used.unpriced]


def plan_facts(room: Room) -> list[str]:
    """List all steps of the plan, with what came of them."""
    plan = room.view.plan if room.view else None
    if plan is None:
        return ["No plan"]
    done = sum(step.status == "done" for step in plan.steps)
    return [f"{done} of {len(plan.steps)} done", *(line for step in plan.steps for line in _step(step))]


def _step(step: PlanStep) -> list[str]:
    lines = [f"{MARKS[step.status]} {one_line(step.name)}"]
    if step.output:
        lines += [f"    {line}" for line in printable(step.output).splitlines()]
    return lines


def sub_task_facts(room: Room) -> list[tuple[str, str]]:
    """List the sub-tasks: the id to open, empty for those of other agents, and the line that tells of it."""
    children = room.view.sub_tasks if room.view else ()
    return [
        (
            "" if child.agent else child.task_id,
            f"{one_line(child.task_id)}{f' at {one_line(child.agent)}' if child.agent else ''}\n"
            f"  {state_words(child.state, child.sub_state)}",
        )
        for child in children
    ]


def state_words(state: str, sub_state: str | None) -> str:
    """Put a sub-task's state into words; one that this version does not know is shown as it is named."""
    try:
        return describe(TaskState(state), sub_state)
    except ValueError:
        return one_line(state.removeprefix("TASK_STATE_"))


def usage_words(view: TaskView | None) -> str:
    """Say in a few characters what a task has used, such as `12.3k tokens · cost 0.0210`; empty if it is not known."""
    used = view.usage if view else None
    if used is None:
        return ""
    tokens = used.input_tokens + used.output_tokens
    parts = [f"{_short(tokens)} token{'' if tokens == 1 else 's'}"]
    if used.cost is not None:
        parts.append(f"cost {used.cost:.4f}")
    return " · ".join(parts)


def _short(count: int) -> str:
    for size, unit in ((1_000_000, "M"), (1_000, "k")):
        if count >= size:
            return f"{count / size:.1f}{unit}"
    return str(count)
