"""Tells workers' supervisors how supervised tasks are, and starts those that are needed."""

import asyncio
import logging
from datetime import timedelta
from typing import Final

from temporalio.client import Client
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.service import RPCError

from tiny_harness.contracts import SUPERVISOR_WORKFLOW, TaskSnapshot, supervisor_workflow_id
from tiny_harness.errors import Unavailable
from tiny_harness.settings import Settings
from tiny_harness_engine.core.desk import Desk, News, Rules
from tiny_harness_engine.core.supervision import works_here
from tiny_harness_engine.supervision_calls import HEAR, Heard, StartSupervisor

PATIENCE_S: Final = 1.0
"""How long a commit waits until the supervisor has been told, before it is tried again."""

log = logging.getLogger(__name__)


class Supervisors:
    """The supervisors on one task queue."""

    def __init__(self, settings: Settings, temporal: Client) -> None:
        self._settings = settings
        self._temporal = temporal

    async def tell(self, task: TaskSnapshot) -> None:
        """Tell the supervisor of a task's worker how the task is. The same news twice does no harm.

        Raises:
            Unavailable: It could not be told; the caller is to try again.
        """
        supervision = task.supervision
        if supervision is None:
            return
        news = News(
            task_id=task.task_id,
            seq=task.head,
            state=task.state,
            activity=supervision.activity,
            is_busy=works_here(task) and bool(task.reading),
            busy_for=timedelta(minutes=supervision.busy_minutes),
            is_stopped=supervision.is_stopped,
        )
        try:
            async with asyncio.timeout(PATIENCE_S):
                await self._signal(supervision.worker, news)
        except (TimeoutError, RPCError) as error:
            log.warning("the supervisor of %s could not be told: %s", supervision.worker, error)
            raise Unavailable("the worker's supervisor cannot be told now") from error

    async def _signal(self, worker: str, news: News) -> None:
        rules = self._rules(worker)
        await self._temporal.start_workflow(
            SUPERVISOR_WORKFLOW,
            StartSupervisor(worker=worker, desk=Desk(rules=rules)),
            id=supervisor_workflow_id(worker),
            task_queue=self._settings.temporal.task_queue,
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
            start_signal=HEAR,
            start_signal_args=[Heard(news=news, rules=rules)],
        )

    def _rules(self, worker: str) -> Rules:
        """How the configuration wants this worker supervised."""
        general = self._settings.supervision
        record = general.workers.get(worker)
        first = record.quiet_minutes if record and record.quiet_minutes else general.quiet_minutes
        return Rules(
            capacity=record.capacity if record else 1,
            ladder=tuple(timedelta(minutes=minutes) for minutes in (first, *general.ladder_minutes)),
            stalls_after=timedelta(minutes=general.stalled_after_minutes),
            reminders_per_hour=general.reminders_per_hour,
            warns_at=tuple(timedelta(hours=hours) for hours in general.warn_hours),
            expires_at=timedelta(hours=general.expire_hours),
        )
