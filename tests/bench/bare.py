"""The durable baseline: what a turn cannot do without."""

from datetime import timedelta

from temporalio import activity, workflow


@activity.defn
async def nothing(text: str) -> str:
    """Do nothing."""
    return text


@workflow.defn
class Bare:
    """What a durable turn cannot do without: one update with a local activity, one activity."""

    def __init__(self) -> None:
        self._asked = False
        self._is_done = False

    @workflow.run
    async def run(self) -> None:
        await workflow.wait_condition(lambda: self._asked)
        await workflow.execute_activity(nothing, "step", start_to_close_timeout=timedelta(seconds=10))
        await workflow.execute_local_activity(nothing, "commit", start_to_close_timeout=timedelta(seconds=10))
        self._is_done = True
        await workflow.wait_condition(workflow.all_handlers_finished)

    @workflow.update
    async def ask(self, text: str) -> str:
        await workflow.execute_local_activity(nothing, text, start_to_close_timeout=timedelta(seconds=10))
        self._asked = True
        return text


@workflow.defn
class Open:
    """A workflow that stays open and takes updates with one local activity each: what a command cannot do without."""

    @workflow.run
    async def run(self) -> None:
        await workflow.wait_condition(lambda: False)

    @workflow.update
    async def ask(self, text: str) -> str:
        return await workflow.execute_local_activity(nothing, text, start_to_close_timeout=timedelta(seconds=10))
