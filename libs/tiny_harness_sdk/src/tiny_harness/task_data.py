"""A task's data as the `task` extension shows it: the same in the engine's events and in the gateway's views. Pure."""

from collections.abc import Sequence
from typing import Any

from tiny_harness.contracts import TaskSnapshot
from tiny_harness.ext.supervision import SupervisionData
from tiny_harness.ext.task import SubTask, TaskData, TaskText
from tiny_harness.states import TaskState


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


def result_artifact(task_id: str, parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Make the artifact that holds a task's result, as A2A JSON."""
    return {"artifactId": f"{task_id}.result", "name": "result", "parts": list(parts)}


def supervision_data(snapshot: TaskSnapshot, acknowledged: Sequence[str] = ()) -> dict[str, Any] | None:
    """Make what stands under the key of the `supervision` extension, as JSON; `None` if the task has no worker.

    Args:
        snapshot: The task.
        acknowledged: Who said that they have what they needed.
    """
    known = snapshot.supervision
    if known is None:
        return None
    data = SupervisionData(
        worker=known.worker,
        queue_position=known.position if snapshot.state is TaskState.SUBMITTED else None,
        reminders=known.reminders,
        stalled=known.is_stalled and not snapshot.state.is_terminal,
        stopped=known.is_stopped and not snapshot.state.is_terminal,
        warnings=known.warnings,
        expired=known.is_expired,
        acknowledged=tuple(acknowledged),
        last_worker_line=known.last_line or None,
    )
    return data.model_dump(mode="json", exclude_none=True)
