"""One durable workflow per task (DESIGN: a task's life; read that section before changing a line).

Turns run in `run` alone; handlers take messages and cut. The state and its lock are the ledger's; a run needs only the
task's id, and adopts whatever each commit says is in the store.
"""

import asyncio
from datetime import timedelta
from typing import Final

from temporalio import workflow
from temporalio.exceptions import ActivityError, FailureError

with workflow.unsafe.imports_passed_through():
    from tiny_harness import contracts
    from tiny_harness.contracts import Cancel, ChildChanged, Delivery, Receipt, StartTask, TaskSnapshot
    from tiny_harness.errors import HarnessError, Unavailable, unpack
    from tiny_harness.intake import authorise

    # By name: `from tiny_harness_engine import calls` would load a copy of the module into every run's sandbox.
    from tiny_harness_engine.calls import (
        COMMIT_RETRY,
        JUDGE,
        JUDGE_TIMEOUT,
        STOP_CHILDREN,
        STOP_TIMEOUT,
        Judgement,
        JudgeRequest,
        StopChildren,
        TakeAnswer,
    )
    from tiny_harness_engine.core import lifecycle, notes, supervision
    from tiny_harness_engine.core.drafts import Decision
    from tiny_harness_engine.core.incoming import read_delivery
    from tiny_harness_engine.core.supervision import TaskNotice
    from tiny_harness_engine.failures import to_failure
    from tiny_harness_engine.remote_calls import FOLLOW_CHILDREN
    from tiny_harness_engine.supervision_calls import TELL_SUPERVISOR
    from tiny_harness_engine.workflows.commands import CommandQueue
    from tiny_harness_engine.workflows.ledger import Decide, Ledger, is_final
    from tiny_harness_engine.workflows.turns import Turns, pause

ROLL_AT_EVENTS: Final = 200
"""A run with this many events goes on as a new one."""
IDLE_ROLL_AT_EVENTS: Final = 20
IDLE_ROLL_AFTER: Final = timedelta(minutes=10)
"""A parked run with more events than that goes on as a new one after this time: waking costs 1 ms per event."""

STORE_PATIENCE: Final = timedelta(seconds=30)
"""How long a run that could not load its task waits before it tries again."""


@workflow.defn(name=contracts.TASK_WORKFLOW)
class TaskWorkflow:
    """A task's only writer."""

    @workflow.init
    def __init__(self, start: StartTask) -> None:
        self._ledger = Ledger(start.task_id)
        self._turns = Turns(self._ledger)
        self._commands = CommandQueue(self._ledger)
        self._idle_timer: asyncio.Task[None] | None = None

    @workflow.run
    async def run(self, start: StartTask) -> None:
        """Work until the task has ended. A run that finds no task ends at once."""
        await self._open(start)
        await self._follow_children()
        await self._tell_supervisor()
        while self._ledger.is_open:
            if not self._ledger.is_running:
                await self._park()
            elif not await self._turns.round():
                await self._wait_for_news()
            await self._roll_if_long()
        await self._stop_children()
        await workflow.wait_condition(workflow.all_handlers_finished)

    @workflow.update(name=contracts.DELIVER)
    async def deliver(self, delivery: Delivery) -> Receipt:
        """Take a message: decide, commit, answer with a receipt. Waits for no turn."""
        try:
            async with self._ledger.lock:
                answer = await self._ledger.take(delivery)
            if answer.must_judge:
                judgement = await self._judge(delivery)
                async with self._ledger.lock:
                    answer = await self._ledger.take(delivery, judgement)
            return _receipt(answer)
        except HarnessError as error:
            raise to_failure(error) from error
        except FailureError as error:
            if is_final(error):
                raise
            raise to_failure(Unavailable("the store cannot answer now")) from error
        except Exception as error:
            workflow.logger.exception("deliver failed")
            raise to_failure(HarnessError()) from error

    @deliver.validator
    def _check_delivery(self, delivery: Delivery) -> None:
        try:
            intake = read_delivery(self._ledger.task_id, delivery).intake
            state = self._ledger.state
            if state is not None:
                authorise(state.task_id, state.participants, delivery.sender.id, intake)
        except HarnessError as error:
            raise to_failure(error) from error

    @workflow.signal(name=contracts.CANCEL)
    async def cancel(self, cancel: Cancel) -> None:
        """End the task as CANCELED, whatever it is doing."""
        del cancel  # the request and who made it are in the store
        await self._guarded("cancel", lambda state: lifecycle.cancel(state) if state else None)

    @workflow.signal(name=contracts.CHILD_CHANGED)
    async def child_changed(self, change: ChildChanged) -> None:
        """Note what became of a sub-task."""

        def decide(state: TaskSnapshot | None) -> Decision | None:
            return lifecycle.child_changed(state, change, notes.ending(state, change)) if state else None

        rows = self._ledger.state.children if self._ledger.state else ()
        # A row that is not known may be in the store: Temporal may have forgotten the commit that made it.
        is_known = any(row.task_id == change.task_id for row in rows)
        await self._guarded(f"child:{change.task_id}:{change.seq}", decide, refresh=not is_known)

    @workflow.signal(name=contracts.NOTICE)
    async def notice(self, told: TaskNotice) -> None:
        """Take what the supervisor of the task's worker says."""
        await self._guarded(told.cause, lambda state: supervision.notice(state, told) if state else None)

    @workflow.signal(name=contracts.RECONCILE)
    async def reconcile(self) -> None:
        """Look whether the store is ahead, or behind.

        An input may have been committed by a worker that died; a failover may have lost commits.
        """
        await self._guarded("reconcile", None)

    @workflow.query(name=contracts.SNAPSHOT)
    def snapshot(self) -> TaskSnapshot | None:
        """Tell the state that this run knows."""
        return self._ledger.state

    async def _judge(self, delivery: Delivery) -> Judgement:
        """Ask hooks elsewhere whether the task may be completed; the task goes on meanwhile."""
        reason = read_delivery(self._ledger.task_id, delivery).intake.reason
        try:
            return await workflow.execute_activity(
                JUDGE,
                JudgeRequest(task_id=self._ledger.task_id, sender=delivery.sender, reason=reason),
                result_type=Judgement,
                schedule_to_close_timeout=JUDGE_TIMEOUT,
                retry_policy=COMMIT_RETRY,
            )
        except ActivityError as error:
            workflow.logger.warning("hooks could not be asked: %s", error.cause)
            return Judgement(refusal="the hooks that decide it did not answer")

    async def _follow_children(self) -> None:
        """See that somebody stands in for each open sub-task at another agent: Temporal may have lost them."""
        rows = self._ledger.state.children if self._ledger.state else ()
        if any(child.agent is not None and not child.state.is_terminal for child in rows):
            await workflow.execute_activity(
                FOLLOW_CHILDREN,
                self._ledger.task_id,
                start_to_close_timeout=STOP_TIMEOUT,
                retry_policy=COMMIT_RETRY,
            )

    async def _tell_supervisor(self) -> None:
        """See that the worker's supervisor knows of the task: Temporal may have lost it."""
        if self._ledger.is_open and self._ledger.state and self._ledger.state.supervision:
            await workflow.execute_activity(
                TELL_SUPERVISOR,
                self._ledger.task_id,
                start_to_close_timeout=STOP_TIMEOUT,
                retry_policy=COMMIT_RETRY,
            )

    async def _stop_children(self) -> None:
        """Take the sub-tasks along that are still open."""
        rows = self._ledger.state.children if self._ledger.state else ()
        open_ones = [child for child in rows if not child.state.is_terminal]
        if open_ones:
            here = tuple(child.task_id for child in open_ones if child.agent is None)
            elsewhere = tuple(child for child in open_ones if child.agent is not None)
            await workflow.execute_activity(
                STOP_CHILDREN,
                StopChildren(task_id=self._ledger.task_id, task_ids=here, remotes=elsewhere),
                start_to_close_timeout=STOP_TIMEOUT,
                retry_policy=COMMIT_RETRY,
            )

    async def _open(self, start: StartTask) -> None:
        """Take the first message, which may have come by its update already, and load the task."""
        while not await self._try_open(start):
            await pause(STORE_PATIENCE, lambda: self._ledger.state is not None)

    async def _try_open(self, start: StartTask) -> bool:
        try:
            async with self._ledger.lock:
                if self._ledger.state is None and start.first is not None:
                    _receipt(await self._ledger.take(start.first))
                await self._ledger.load()
        except HarnessError as error:
            workflow.logger.info("first message refused: %s", error)
        except FailureError as error:
            workflow.logger.warning("the store cannot answer: %s", error)
            return False
        except Exception as error:
            workflow.logger.exception("opening failed")
            raise to_failure(HarnessError()) from error
        return True

    async def _guarded(self, cause: str, decide: Decide | None, *, refresh: bool = False) -> None:
        try:
            async with self._ledger.lock:
                await self._ledger.load(refresh=refresh or decide is None)
                if decide is not None:
                    await self._ledger.commit(cause, decide)
                else:
                    await self._ledger.restore()
        except Exception:  # noqa: BLE001 - a bug costs one call: nobody waits for a signal, housekeeping sends it again
            workflow.logger.exception("%s failed", cause)
        self._ledger.news += 1

    async def _park(self) -> None:
        """Wait until there is something to do; a long history is rolled over when nothing happens for a while."""
        length = workflow.info().get_current_history_length()
        if length > IDLE_ROLL_AT_EVENTS and self._idle_timer is None:
            self._idle_timer = asyncio.create_task(self._wake_when_idle())
        await self._wait_for_news()

    async def _wake_when_idle(self) -> None:
        await asyncio.sleep(IDLE_ROLL_AFTER.total_seconds())
        self._idle_timer = None
        self._ledger.news += 1

    async def _wait_for_news(self) -> None:
        seen = self._ledger.news
        await workflow.wait_condition(lambda: self._ledger.news != seen)

    async def _roll_if_long(self) -> None:
        """Go on as a new run, which loads the task anew, when the history is long. Only between steps."""
        if not self._should_roll():
            return
        await workflow.wait_condition(workflow.all_handlers_finished)
        if self._ledger.is_open and not self._has_commands():
            workflow.continue_as_new(StartTask(task_id=self._ledger.task_id))

    def _should_roll(self) -> bool:
        info = workflow.info()
        length = info.get_current_history_length()
        idle = not self._ledger.is_running and workflow.now() - self._ledger.changed_at >= IDLE_ROLL_AFTER
        is_long = length >= ROLL_AT_EVENTS or info.is_continue_as_new_suggested()
        return not self._has_commands() and (is_long or (idle and length > IDLE_ROLL_AT_EVENTS))

    def _has_commands(self) -> bool:
        return self._ledger.state is not None and bool(self._ledger.state.commands)


def _receipt(answer: TakeAnswer) -> Receipt:
    if answer.refusal is not None:
        raise unpack(*answer.refusal)
    if answer.receipt is None:
        raise HarnessError
    return answer.receipt
