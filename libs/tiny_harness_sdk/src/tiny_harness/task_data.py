"""A task's data as the `task` extension shows it: the same in the engine's events and in the gateway's views. Pure."""

from typing import Any

from tiny_harness.contracts import TaskSnapshot
from tiny_harness.ext.task import SubTask, TaskData, TaskText


def task_data(snapshot: TaskSnapshot, text: TaskText) -> dict[str, Any]:
    """Make what stands under the extension's key in `Task.metadata`, as JSON; what is not set is left out."""
    data = TaskData(
        **{name: getattr(text, name) for name in TaskText.model_fields},
        participants=snapshot.participants,
        parent_tasks=(snapshot.parent,) if snapshot.parent else (),
        sub_tasks=tuple(
            SubTask(
                task_id=child.remote_id or child.task_id,
                agent=child.agent,
                state=child.state.value,
                sub_state=child.sub_state,
            )
            for child in snapshot.children
        ),
        plan=snapshot.plan,
        usage=snapshot.usage.shown() if snapshot.usage.calls else None,
        lifecycle=snapshot.lifecycle,
        model=snapshot.model,
        reasoning_effort=snapshot.effort,
    )
    return data.model_dump(mode="json", exclude_none=True)
