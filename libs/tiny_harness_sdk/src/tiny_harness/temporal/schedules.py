"""The heartbeat's schedule: one for a deployment, by the name of its task queue, whoever starts first makes it."""

from dataclasses import replace
from datetime import timedelta

from temporalio.client import (
    Client,
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleAlreadyRunningError,
    ScheduleIntervalSpec,
    ScheduleOverlapPolicy,
    SchedulePolicy,
    ScheduleSpec,
    ScheduleUpdate,
    ScheduleUpdateInput,
)
from temporalio.service import RPCError, RPCStatusCode

from tiny_harness.contracts import HEARTBEAT_WORKFLOW, heartbeat_id


async def ensure_heartbeat(temporal: Client, queue: str, every: timedelta) -> None:
    """Make the schedule, or give the one that is there this interval; one that is paused stays so.

    Raises:
        RPCError: Temporal does not answer.
    """
    schedule = _schedule(queue, every)
    try:
        await temporal.create_schedule(heartbeat_id(queue), schedule)
    except ScheduleAlreadyRunningError:

        async def changed(found: ScheduleUpdateInput) -> ScheduleUpdate | None:
            known = found.description.schedule
            if known.spec.intervals == schedule.spec.intervals:
                return None
            return ScheduleUpdate(replace(known, spec=schedule.spec))

        await temporal.get_schedule_handle(heartbeat_id(queue)).update(changed)


async def delete_heartbeat(temporal: Client, queue: str) -> bool:
    """Remove the schedule; false if there is none.

    Raises:
        RPCError: Temporal does not answer.
    """
    try:
        await temporal.get_schedule_handle(heartbeat_id(queue)).delete()
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise
        return False
    return True


def _schedule(queue: str, every: timedelta) -> Schedule:
    return Schedule(
        action=ScheduleActionStartWorkflow(HEARTBEAT_WORKFLOW, id=heartbeat_id(queue), task_queue=queue),
        spec=ScheduleSpec(intervals=[ScheduleIntervalSpec(every=every)]),
        # One that takes long has the next ones left out, and those that nobody was there for are not made up for.
        policy=SchedulePolicy(overlap=ScheduleOverlapPolicy.SKIP, catchup_window=every),
    )
