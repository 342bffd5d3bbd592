"""The heartbeat: started by the deployment's schedule, done by whichever engine is free."""

from datetime import timedelta
from typing import Final

from temporalio import workflow
from temporalio.common import RetryPolicy

with workflow.unsafe.imports_passed_through():
    from tiny_harness import contracts

BEAT: Final = "beat"
"""The activity."""
TIMEOUT: Final = timedelta(minutes=10)
RETRY: Final = RetryPolicy(initial_interval=timedelta(seconds=10), maximum_attempts=3)
"""Then it waits for the next one: what was left is done then."""


@workflow.defn(name=contracts.HEARTBEAT_WORKFLOW)
class HeartbeatWorkflow:
    """One heartbeat."""

    @workflow.run
    async def run(self) -> None:
        """Do what is done now and then."""
        await workflow.execute_activity(BEAT, start_to_close_timeout=TIMEOUT, retry_policy=RETRY)
