"""What hooks are told about a task: the part that all contexts share."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from tiny_harness.access import strongest_role
from tiny_harness.contracts import Sender, TaskSnapshot
from tiny_harness.ext.task import TaskText
from tiny_harness.hooks.contexts import SenderRef, SubTaskRef, TaskRef
from tiny_harness.ids import new_id
from tiny_harness.store import Reading, TaskRecord
from tiny_harness.task_data import supervision_data
from tiny_harness_engine.core.plan import progress


@dataclass(frozen=True, slots=True)
class Subject:
    """A task and whoever acts on it."""

    snapshot: TaskSnapshot
    text: TaskText
    sender: Sender | None = None
    children: Mapping[str, TaskSnapshot] | None = None
    """Its sub-tasks as the store has them; by default as the task has heard of them."""

    @property
    def unresolved(self) -> tuple[str, ...]:
        """Ids of its sub-tasks that are open in the store: news of their end may still be on its way to the task."""
        known = self.children or {}
        return tuple(
            task_id
            for task_id in self.snapshot.unresolved
            if task_id not in known or not known[task_id].state.is_terminal
        )

    def facts(self, operation: str, attempt: int = 1) -> dict[str, Any]:
        """The fields that every context has; a new correlation id each time."""
        return {
            "operation": operation,
            "phase": "pre",
            "task": self.task_ref(),
            "participants": self.snapshot.participants,
            "sender": self.sender_ref(),
            "correlation_id": new_id(),
            "attempt": attempt,
        }

    def task_ref(self) -> TaskRef:
        """The task as a context shows it."""
        task = self.snapshot
        done, total = progress(task.plan)
        return TaskRef(
            task_id=task.task_id,
            context_id=task.context_id,
            name=self.text.name,
            goal=self.text.goal,
            state=task.state.value,
            sub_state=task.sub_state,
            lifecycle=task.lifecycle,
            model=task.model,
            effort=task.effort,
            parent_tasks=(task.parent,) if task.parent else (),
            sub_tasks=self._sub_tasks(),
            plan_done=done,
            plan_total=total,
            usage=task.usage.shown(),
            supervision=supervision_data(task),
        )

    def sender_ref(self) -> SenderRef | None:
        """Whoever acts, with their strongest role."""
        if self.sender is None:
            return None
        role = strongest_role(self.snapshot.participants, self.sender.id)
        return SenderRef(id=self.sender.id, kind=self.sender.kind, role=role)

    def _sub_tasks(self) -> tuple[SubTaskRef, ...]:
        rows: list[SubTaskRef] = []
        for child in self.snapshot.children:
            now = (self.children or {}).get(child.task_id, child)
            rows.append(SubTaskRef(task_id=child.task_id, state=now.state.value, sub_state=now.sub_state))
        return tuple(rows)


def read_subject(reading: Reading, task_id: str, sender: Sender | None = None) -> Subject | None:
    """Read the subject of a stored task, its sub-tasks as they are."""
    record = reading.task(task_id)
    if record is None:
        return None
    children = [child.task_id for child in record.snapshot.children]
    return replace(subject_of(record, sender), children=reading.snapshots(children) if children else {})


def subject_of(record: TaskRecord, sender: Sender | None = None) -> Subject:
    """Make the subject of a stored task, its sub-tasks as it has heard of them."""
    return Subject(record.snapshot, TaskText.model_validate_json(record.text), sender)
