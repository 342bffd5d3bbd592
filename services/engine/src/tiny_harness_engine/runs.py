"""Starts and wakes the runs of tasks' workflows, also of those that have none just now."""

from typing import Any

from temporalio.client import Client
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy

from tiny_harness.contracts import TASK_WORKFLOW, StartTask, workflow_id


class Runs:
    """The runs on one task queue."""

    def __init__(self, temporal: Client, task_queue: str) -> None:
        self._temporal = temporal
        self._task_queue = task_queue

    async def begin(self, task_id: str, signal: str | None = None, *arguments: Any) -> None:
        """Make sure that an open task has a run, and signal it.

        Raises:
            RPCError: Temporal cannot do it now.
        """
        # The store says that the task is open, so a closed run of it, whatever closed it, must not stand in the way.
        await self._temporal.start_workflow(
            TASK_WORKFLOW,
            StartTask(task_id=task_id),
            id=workflow_id(task_id),
            task_queue=self._task_queue,
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
            start_signal=signal,
            start_signal_args=arguments,
        )
