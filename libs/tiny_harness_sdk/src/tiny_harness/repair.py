"""Mends what store and Temporal say of tasks, when an operator asks for it.

The store decides. A run that is stuck, because no engine can replay it or because of a bug, is replaced by one that
starts from the store. After the store lost commits, runs that know more are told to write that down.
"""

from collections.abc import AsyncGenerator
from typing import Final, Literal

from temporalio.client import Client
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.service import RPCError, RPCStatusCode

from tiny_harness.contracts import RECONCILE, TASK_WORKFLOW, StartTask, workflow_id
from tiny_harness.errors import TaskNotFound
from tiny_harness.states import OPEN_STATES
from tiny_harness.store import Store

Repaired = Literal["restarted", "ended", "told"]
"""`restarted`: its run is a new one, from the store. `ended`: it has ended, and a run that was left is gone.
`told`: the store does not know it; its run has been told, and writes what it knows."""

PAGE: Final = 500


async def repair_task(temporal: Client, store: Store, queue: str, task_id: str) -> Repaired:
    """Replace a task's run by one that starts from the store.

    Raises:
        TaskNotFound: Neither store nor Temporal knows it.
        RPCError: Temporal does not answer.
        Unavailable: The store does not answer.
    """
    record = await store.task(task_id)
    if record is None:
        if not await _signal(temporal, task_id):
            raise TaskNotFound(task_id)
        return "told"
    await _terminate(temporal, task_id)
    if record.snapshot.state.is_terminal:
        return "ended"
    await temporal.start_workflow(
        TASK_WORKFLOW,
        StartTask(task_id=task_id),
        id=workflow_id(task_id),
        task_queue=queue,
        id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,  # housekeeping may have been faster
        id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
    )
    return "restarted"


async def reconcile_all(temporal: Client, store: Store, queue: str) -> int:
    """Tell every open task to compare itself with the store, those that the store does not know, too.

    Returns:
        How many were told.

    Raises:
        RPCError: Temporal does not answer.
        Unavailable: The store does not answer.
    """
    told = set[str]()
    async for task_id in _running(temporal):
        if await _signal(temporal, task_id):
            told.add(task_id)
    async for task_id in _open(store):
        if task_id not in told:
            await temporal.start_workflow(
                TASK_WORKFLOW,
                StartTask(task_id=task_id),
                id=workflow_id(task_id),
                task_queue=queue,
                id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
                id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
            )
            told.add(task_id)
    return len(told)


async def _running(temporal: Client) -> AsyncGenerator[str]:
    prefix = workflow_id("")
    query = f"WorkflowType = '{TASK_WORKFLOW}' AND ExecutionStatus = 'Running'"
    async for run in temporal.list_workflows(query):
        yield run.id.removeprefix(prefix)


async def _open(store: Store) -> AsyncGenerator[str]:
    after = ""
    while page := await store.open_tasks(sorted(OPEN_STATES), after, PAGE):
        for task_id in page:
            yield task_id
        after = page[-1]


async def _signal(temporal: Client, task_id: str) -> bool:
    """Tell a run to look at the store; false if there is none."""
    try:
        await temporal.get_workflow_handle(workflow_id(task_id)).signal(RECONCILE)
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise
        return False
    return True


async def _terminate(temporal: Client, task_id: str) -> None:
    try:
        await temporal.get_workflow_handle(workflow_id(task_id)).terminate("repaired by an operator")
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise
