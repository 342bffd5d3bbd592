"""`stop_children`: whoever ends takes the sub-tasks along that are still open (DESIGN: cancel always wins)."""

import asyncio
import logging
from typing import Final

from temporalio import activity

from tiny_harness.contracts import CANCEL, Cancel
from tiny_harness.ext.task import AGENT_ID
from tiny_harness.store import Store
from tiny_harness_engine.agents.stand_ins import StandIns
from tiny_harness_engine.calls import STOP_CHILDREN, StopChildren
from tiny_harness_engine.runs import Runs

PATIENCE_S: Final = 5.0
"""How long sub-tasks may take to stop before those that did not are listed in the log."""
LOOK_S: Final = 0.2

log = logging.getLogger(__name__)


class StopChildrenActivity:
    """`stop_children`, bound to a store and to Temporal."""

    def __init__(self, store: Store, runs: Runs, stand_ins: StandIns) -> None:
        self._store = store
        self._runs = runs
        self._stand_ins = stand_ins

    @activity.defn(name=STOP_CHILDREN)
    async def stop_children(self, request: StopChildren) -> None:
        """Cancel sub-tasks, and see that they stop. A cancel that is not answered in time is carried out by force."""
        here, elsewhere = await asyncio.gather(
            self._stop_here(request), self._stand_ins.stop(request.task_id, request.remotes)
        )
        if here or elsewhere:
            ids = ", ".join((*here, *elsewhere))
            log.warning("task %s has ended; these sub-tasks have not stopped yet: %s", request.task_id, ids)

    async def _stop_here(self, request: StopChildren) -> list[str]:
        """Cancel those on this harness; the ids of those that have not stopped in time."""
        for task_id in request.task_ids:
            await self._store.request_cancel(task_id, AGENT_ID)
            await self._runs.begin(task_id, CANCEL, Cancel(requested_by=AGENT_ID))
        try:
            async with asyncio.timeout(PATIENCE_S):
                while await self._running(request):  # noqa: ASYNC110 - the store is asked, for any engine may do it
                    await asyncio.sleep(LOOK_S)
        except TimeoutError:
            return await self._running(request)
        return []

    async def _running(self, request: StopChildren) -> list[str]:
        now = await self._store.snapshots(request.task_ids)
        return [task_id for task_id, snapshot in now.items() if not snapshot.state.is_terminal]
