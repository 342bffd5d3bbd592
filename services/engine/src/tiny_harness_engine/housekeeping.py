"""Keeps store and Temporal together: at engine start, and every minute.

Temporal may lose all it knows; the store decides. Every open task gets a run, every unfinished one is told to look at
the store, and a cancel that nobody answered is carried out here. Of many engines on a store one does it at a time, and
none soon after another: which one does not matter.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final

from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from tiny_harness.contracts import RECONCILE, TASK_WORKFLOW, workflow_id
from tiny_harness.errors import HarnessError, Unavailable
from tiny_harness.states import OPEN_STATES, TaskState
from tiny_harness_engine.activities.committer import Committer
from tiny_harness_engine.calls import CommitRequest
from tiny_harness_engine.core import lifecycle
from tiny_harness_engine.runs import Runs

log = logging.getLogger(__name__)

NAME: Final = "housekeeping"
"""What an engine holds in the store during a pass, and under which it says that it has made one."""
INTERVAL_S: Final = 60.0
SOON: Final = timedelta(seconds=50)
"""A pass of another engine that is younger makes ours needless."""
PAGE: Final = 500
AT_ONCE: Final = 8
"""Calls to Temporal that housekeeping makes at the same time; turns come first."""
CANCEL_PATIENCE: Final = timedelta(seconds=10)
"""How long a task may take to answer a cancel."""


class Housekeeping:
    """One pass, or a pass every minute, over all open tasks."""

    def __init__(self, committer: Committer, temporal: Client, runs: Runs) -> None:
        self._store = committer.store
        self._committer = committer
        self._temporal = temporal
        self._runs = runs
        self._slots = asyncio.Semaphore(AT_ONCE)

    async def run(self) -> None:
        """Pass over the tasks until cancelled: at once, for this engine may be the first after a crash of all."""
        is_first = True
        while True:
            try:
                if is_first or not await self._was_done():
                    is_first = not await self.once()
            except (Unavailable, RPCError) as error:
                log.warning("housekeeping could not finish; it tries again in %s s: %s", INTERVAL_S, error)
            except Exception:  # a bug costs one pass: without housekeeping nothing would ever heal
                log.exception("housekeeping could not finish; it tries again in %s s", INTERVAL_S)
            await asyncio.sleep(INTERVAL_S)

    async def once(self) -> bool:
        """Make one pass; false if another engine is at it."""
        async with self._store.alone(NAME) as is_ours:
            if is_ours:
                await self._pass()
        return is_ours

    async def _was_done(self) -> bool:
        last = await self._store.last_beat(NAME)
        return last is not None and last[1] < SOON

    async def _pass(self) -> None:
        await self._force_cancels()
        unfinished = await self._ids([TaskState.WORKING, TaskState.SUBMITTED])
        await self._each(unfinished, self._reconcile)
        known = set(unfinished) | await self._running()
        missing = [task_id for task_id in await self._ids(sorted(OPEN_STATES)) if task_id not in known]
        await self._each(missing, self._start)
        await self._store.save_beat(NAME, "{}")

    async def _ids(self, states: list[TaskState]) -> list[str]:
        found: list[str] = []
        while page := await self._store.open_tasks(states, found[-1] if found else "", PAGE):
            found.extend(page)
        return found

    async def _running(self) -> set[str]:
        query = f"WorkflowType = '{TASK_WORKFLOW}' AND ExecutionStatus = 'Running'"
        prefix = workflow_id("")
        return {run.id.removeprefix(prefix) async for run in self._temporal.list_workflows(query)}

    async def _each(self, task_ids: list[str], work: Callable[[str], Awaitable[None]]) -> None:
        async def one(task_id: str) -> None:
            async with self._slots:
                await self._tried(task_id, work(task_id))

        async with asyncio.TaskGroup() as group:
            for task_id in task_ids:
                group.create_task(one(task_id))

    async def _tried(self, task_id: str, work: Awaitable[None]) -> None:
        """Await work on one task; its failure keeps no other task waiting."""
        try:
            await work
        except (HarnessError, RPCError) as error:
            log.warning("housekeeping of task %s failed, and is tried again: %s", task_id, error)

    async def _start(self, task_id: str) -> None:
        await self._runs.begin(task_id)

    async def _reconcile(self, task_id: str) -> None:
        await self._runs.begin(task_id, RECONCILE)

    async def _force_cancels(self) -> None:
        for request in await self._store.pending_cancels(CANCEL_PATIENCE):
            log.warning("task %s did not answer its cancel; ending it", request.task_id)
            await self._tried(request.task_id, self._force_cancel(request.task_id))

    async def _force_cancel(self, task_id: str) -> None:
        await self._terminate(task_id)
        while not await self._commit_cancel(task_id):
            log.info("task %s moved while it was ended; trying again", task_id)
        await self._runs.begin(task_id)  # a run of an ended task takes its open sub-tasks along

    async def _terminate(self, task_id: str) -> None:
        try:
            await self._temporal.get_workflow_handle(workflow_id(task_id)).terminate("cancel was not answered")
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise

    async def _commit_cancel(self, task_id: str) -> bool:
        """Write the end; false if a last commit of the run came first."""
        record = await self._store.task(task_id)
        decision = lifecycle.cancel(record.snapshot) if record else None
        if record is None or decision is None:
            return True
        request = CommitRequest(task_id=task_id, cause="cancel", head=record.snapshot.head, decision=decision)
        done = await self._committer.commit(request)
        return done.seq is not None or (done.snapshot is not None and done.snapshot.state.is_terminal)
