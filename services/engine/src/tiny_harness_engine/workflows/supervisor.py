"""Supervises one worker for as long as it has open tasks: starts them in turn, reminds, and ends what expires.

It holds no truth about tasks: it hears how they are after each commit, and what it decides is recorded by the tasks
themselves. Its timers are durable; with no supervised task open there is no run and nothing wakes (adr-042).
"""

from contextlib import suppress
from datetime import timedelta
from typing import Final

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from tiny_harness import contracts
    from tiny_harness_engine.core import desk
    from tiny_harness_engine.core.desk import Notice
    from tiny_harness_engine.supervision_calls import (
        GIVE_NOTICE,
        HEAR,
        NOTICE_RETRY,
        NOTICE_TIMEOUT,
        GiveNotice,
        Heard,
        StartSupervisor,
    )

ROLL_AT_EVENTS: Final = 200
"""A run with this many events goes on as a new one."""


@workflow.defn(name=contracts.SUPERVISOR_WORKFLOW)
class SupervisorWorkflow:
    """A worker's supervisor."""

    @workflow.init
    def __init__(self, start: StartSupervisor) -> None:
        self._at = start
        self._news = 0

    @workflow.run
    async def run(self, start: StartSupervisor) -> None:
        """Work until the worker has no open task."""
        del start  # taken by `__init__`
        while True:
            seen = self._news
            await self._look()
            if self._news != seen:
                continue
            if not self._at.desk.papers:
                return
            self._roll_if_long()
            await self._wait(seen)

    @workflow.signal(name=HEAR)
    def hear(self, heard: Heard) -> None:
        """Hear how a task is now."""
        known = self._at.desk.model_copy(update={"rules": heard.rules})
        self._at = self._at.model_copy(update={"desk": desk.hear(known, heard.news, workflow.now())})
        self._news += 1

    async def _look(self) -> None:
        """Do what is due. What is heard meanwhile goes to the desk as it is then."""
        after, notices = desk.look(self._at.desk, workflow.now())
        first = self._at.given
        self._at = self._at.model_copy(update={"desk": after, "given": first + len(notices)})
        for number, notice in enumerate(notices, first):
            await self._give(number, notice)

    async def _give(self, number: int, notice: Notice) -> None:
        cause = f"{notice.kind}:{workflow.info().first_execution_run_id}:{number}"
        await workflow.execute_activity(
            GIVE_NOTICE,
            GiveNotice(worker=self._at.worker, cause=cause, notice=notice),
            start_to_close_timeout=NOTICE_TIMEOUT,
            retry_policy=NOTICE_RETRY,
        )

    async def _wait(self, seen: int) -> None:
        """Wait for news, or until something is due."""
        at = desk.next_look(self._at.desk, workflow.now())
        patience = None if at is None else max(at - workflow.now(), timedelta())
        with suppress(TimeoutError):
            await workflow.wait_condition(lambda: self._news != seen, timeout=patience)

    def _roll_if_long(self) -> None:
        info = workflow.info()
        if info.get_current_history_length() >= ROLL_AT_EVENTS or info.is_continue_as_new_suggested():
            workflow.continue_as_new(self._at)
