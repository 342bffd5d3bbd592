"""Delivers the notifications of one configuration, in order, apart from the task: a slow receiver holds nobody up."""

from datetime import timedelta
from typing import Final

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from tiny_harness.push import NEWS, PUSH_WORKFLOW
    from tiny_harness_engine.push_calls import DELIVER, RETRY, TIMEOUT, Delivered, StartPush

IDLE: Final = timedelta(minutes=5)
"""After that it ends; the next news starts it again."""


@workflow.defn(name=PUSH_WORKFLOW)
class PushWorkflow:
    """The deliveries of one configuration."""

    def __init__(self) -> None:
        self._has_news = True

    @workflow.run
    async def run(self, start: StartPush) -> None:
        """Deliver until there is nothing more to tell, or nothing happens for a while."""
        while True:
            self._has_news = False
            done: Delivered = await workflow.execute_activity(
                DELIVER, start.key, result_type=Delivered, start_to_close_timeout=TIMEOUT, retry_policy=RETRY
            )
            if done.is_over:
                return
            if done.pause_s:
                await workflow.sleep(done.pause_s)
            elif not done.has_more and not await self._is_woken():
                return
            if workflow.info().is_continue_as_new_suggested():
                workflow.continue_as_new(start)

    @workflow.signal(name=NEWS)
    def news(self) -> None:
        """The task has new events."""
        self._has_news = True

    async def _is_woken(self) -> bool:
        """Wait for news; false if there were none for long."""
        try:
            await workflow.wait_condition(lambda: self._has_news, timeout=IDLE)
        except TimeoutError:
            return False
        return True
