"""The workflows that stand in for remote sub-tasks: started, found again after a loss, and stopped."""

import asyncio
import logging
from collections.abc import Sequence
from typing import Any, Final

from temporalio.client import Client, WorkflowFailureError, WorkflowHandle
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.service import RPCError

from tiny_harness.contracts import CANCEL, REMOTE_WORKFLOW, Cancel, Child, remote_workflow_id
from tiny_harness.errors import Unavailable
from tiny_harness.ext.task import AGENT_ID
from tiny_harness.states import TERMINAL_STATES
from tiny_harness.store import Store
from tiny_harness_engine.agents.brief import Brief
from tiny_harness_engine.core.drafts import NewRemote
from tiny_harness_engine.core.remote import StandIn
from tiny_harness_engine.remote_calls import STOP_S

TEMPORAL_PATIENCE_S: Final = 1.0
"""How long a commit waits until a stand-in has been started, before it is tried again."""
_ENDINGS: Final = frozenset(state.value for state in TERMINAL_STATES)

log = logging.getLogger(__name__)


class StandIns:
    """The stand-ins on one task queue."""

    def __init__(self, store: Store, temporal: Client, task_queue: str) -> None:
        self._store = store
        self._temporal = temporal
        self._task_queue = task_queue

    async def open(self, parent: str, new: NewRemote) -> None:
        """Keep a sub-task's brief and start its stand-in; it waits for the parent to have the sub-task.

        Raises:
            Unavailable: It could not be started; the caller is to try again.
        """
        brief = Brief(goal=new.goal, description=new.description, acceptance_criteria=new.acceptance_criteria)
        await self._store.save_call(parent, *_place(new.child), brief.model_dump_json())
        try:
            async with asyncio.timeout(TEMPORAL_PATIENCE_S):
                await self._begin(StandIn(parent=parent, child=new.child))
        except (TimeoutError, RPCError) as error:
            log.warning("the stand-in of %s could not be started: %s", new.child.task_id, error)
            raise Unavailable("a sub-task cannot be started now") from error

    async def brief(self, parent: str, child: Child) -> Brief | None:
        """Load a sub-task's brief."""
        turn, step, call = _place(child)
        for row in await self._store.calls(parent, [turn]):
            if (row.step, row.call) == (step, call) and row.record is not None:
                return Brief.model_validate_json(row.record)
        return None

    async def ensure(self, parent: str) -> None:
        """Start the stand-ins of a task's open remote sub-tasks that have none: Temporal may have lost them.

        Raises:
            RPCError: Temporal cannot do it now.
        """
        record = await self._store.task(parent)
        for child in record.snapshot.children if record else ():
            if child.agent is not None and not child.state.is_terminal:
                await self._begin(StandIn(parent=parent, child=child, is_again=True))

    async def stop(self, parent: str, children: Sequence[Child]) -> tuple[str, ...]:
        """Cancel remote sub-tasks, and see for a few seconds whether they stop.

        Returns:
            Our ids of those that have not stopped yet. Their stand-ins go on trying.
        """
        stopped = await asyncio.gather(*(self._stop(parent, child) for child in children))
        return tuple(child.task_id for child, is_stopped in zip(children, stopped, strict=True) if not is_stopped)

    async def _stop(self, parent: str, child: Child) -> bool:
        try:
            async with asyncio.timeout(STOP_S):
                start = StandIn(parent=parent, child=child, is_again=True)
                handle = await self._begin(start, CANCEL, Cancel(requested_by=AGENT_ID))
                return await handle.result() in _ENDINGS
        except (TimeoutError, RPCError, WorkflowFailureError) as error:
            log.warning("remote sub-task %s of %s has not stopped: %r", child.task_id, parent, error)
            return False

    async def _begin(self, start: StandIn, signal: str | None = None, *arguments: Any) -> WorkflowHandle[Any, str]:
        return await self._temporal.start_workflow(
            REMOTE_WORKFLOW,
            start,
            id=remote_workflow_id(start.parent, start.child.task_id),
            task_queue=self._task_queue,
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
            start_signal=signal,
            start_signal_args=arguments,
            result_type=str,
        )


def _place(child: Child) -> tuple[int, int, int]:
    """Say where a brief is kept: as if it were a call of a turn below 0, which no turn is."""
    turn, step, call = child.origin or (0, 0, 0)
    return -turn, step, call
