"""Stands in for a sub-task at a remote agent: gives it the brief, follows it, and tells the parent of each change.

It lives for as long as the remote task; a crash at any moment goes on where it was. The parent hears the same signal as
from a child on this harness.
"""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from datetime import timedelta
from typing import Any, Final, TypeVar

from temporalio import workflow
from temporalio.exceptions import ActivityError

with workflow.unsafe.imports_passed_through():
    from tiny_harness import contracts
    from tiny_harness.contracts import Cancel, ChildChanged
    from tiny_harness.states import TaskState
    from tiny_harness_engine.core import remote
    from tiny_harness_engine.core.remote import StandIn
    from tiny_harness_engine.remote_calls import (
        CANCEL_TIMEOUT,
        FOLLOW_START_TIMEOUT,
        FOLLOW_TIMEOUT,
        HEARTBEAT,
        LOOK_TIMEOUT,
        ONCE,
        PAUSES_S,
        QUEUE_SUFFIX,
        REMOTE_CANCEL,
        REMOTE_FOLLOW,
        REMOTE_LOOK,
        REMOTE_SEND,
        REMOTE_TELL,
        RETRY,
        SEND_TIMEOUT,
        TELL_TIMEOUT,
        RemoteAnswer,
        TellRequest,
    )

ROLL_AT_EVENTS: Final = 200
"""A run with this many events goes on as a new one."""
SEND_GRACE: Final = timedelta(seconds=2)
"""How long a cancel waits for a brief that is on its way: what is known to be there is cancelled more surely."""

_LIVE: Final = (TaskState.SUBMITTED, TaskState.WORKING)
T = TypeVar("T")


@workflow.defn(name=contracts.REMOTE_WORKFLOW)
class RemoteTaskWorkflow:
    """One remote sub-task's only link to its parent."""

    @workflow.init
    def __init__(self, start: StandIn) -> None:
        self._at = start
        self._is_cancelled = False
        self._may_follow = False

    @workflow.run
    async def run(self, start: StandIn) -> str:
        """Work until the sub-task has ended, or nobody is interested any more.

        Returns:
            The state that it ended in, as far as known.
        """
        del start  # taken by `__init__`
        while not self._at.child.state.is_terminal:
            if self._is_cancelled:
                return await self._stop()
            await self._round()
            await self._roll_if_long()
        return self._at.child.state.value

    @workflow.signal(name=contracts.CANCEL)
    def cancel(self, cancel: Cancel) -> None:
        """Stop the remote task: its parent has ended."""
        del cancel
        self._is_cancelled = True

    async def _round(self) -> None:
        """Ask the agent once, tell what is new, and wait a while if nothing is."""
        child, grace = self._at.child, timedelta()
        follows = child.remote_id is not None and self._may_follow and child.state in _LIVE
        if child.remote_id is None:
            work, grace = self._send(), SEND_GRACE
        else:
            work = self._follow() if follows else self._look()
        answer = await self._unless_cancelled(work, grace)
        if answer is None:
            await self._pause(self._at.pauses)  # not if it was cancelled: that ends every pause
        elif answer.is_orphan:
            self._is_cancelled = True
            self._at = self._at.model_copy(update={"is_again": self._at.is_again or answer.may_have_arrived})
        elif not await self._take(answer):
            await self._rest(answer, follows=follows)

    async def _take(self, answer: RemoteAnswer) -> bool:
        """Take in what an agent said; true if something is new."""
        heard = self._at, None
        if answer.fault is not None:
            heard = remote.bear(self._at, answer.fault, workflow.now(), answer.patience_s)
        elif answer.seen is not None:
            heard = remote.hear(self._at, answer.seen)
        self._at, change = heard
        self._may_follow = answer.fault is None and answer.streams
        if change is None:
            return False
        await self._tell(change)
        return True

    async def _rest(self, answer: RemoteAnswer, *, follows: bool) -> None:
        """Wait before the next look, longer each time. A stream is opened at once, if the last one held."""
        if answer.was_steady:
            self._at = self._at.model_copy(update={"pauses": 0})
            return
        if self._may_follow and not follows and self._at.child.state in _LIVE:
            return
        self._may_follow = self._may_follow and not follows  # it broke early: look first
        pauses = self._at.pauses
        self._at = self._at.model_copy(update={"pauses": pauses + 1})
        await self._pause(pauses)

    async def _pause(self, pauses: int) -> None:
        duration = timedelta(seconds=PAUSES_S[min(pauses, len(PAUSES_S) - 1)])
        with suppress(TimeoutError):
            await workflow.wait_condition(lambda: self._is_cancelled, timeout=duration)

    async def _tell(self, change: ChildChanged) -> None:
        """Tell the parent. One that has ended makes the sub-task an orphan, which is cancelled."""
        request = TellRequest(parent=self._at.parent, change=change)
        told = self._unless_cancelled(
            workflow.execute_activity(
                REMOTE_TELL,
                request,
                result_type=bool,
                start_to_close_timeout=TELL_TIMEOUT,
                heartbeat_timeout=HEARTBEAT,
                retry_policy=RETRY,
            )
        )
        if not await told:
            self._is_cancelled = True

    async def _stop(self) -> str:
        """Cancel the remote task, and do not give up for as long as its agent may be away."""
        if self._at.child.remote_id is None and not self._at.is_again:
            return TaskState.CANCELED.value
        begun, pauses = workflow.now(), 0
        while True:
            answer = await self._cancel()
            if answer is not None:
                ending = _ending(answer)
                is_late = workflow.now() - begun >= timedelta(seconds=answer.patience_s)
                if ending is not None or is_late:
                    return ending or self._at.child.state.value
            await asyncio.sleep(PAUSES_S[min(pauses, len(PAUSES_S) - 1)])
            pauses += 1

    async def _send(self) -> RemoteAnswer:
        return await workflow.execute_activity(
            REMOTE_SEND,
            self._at,
            result_type=RemoteAnswer,
            start_to_close_timeout=SEND_TIMEOUT,
            heartbeat_timeout=HEARTBEAT,
            retry_policy=RETRY,
        )

    async def _look(self) -> RemoteAnswer:
        return await workflow.execute_activity(
            REMOTE_LOOK,
            self._at,
            result_type=RemoteAnswer,
            start_to_close_timeout=LOOK_TIMEOUT,
            heartbeat_timeout=HEARTBEAT,
            retry_policy=RETRY,
        )

    async def _follow(self) -> RemoteAnswer:
        try:
            return await workflow.execute_activity(
                REMOTE_FOLLOW,
                self._at,
                task_queue=workflow.info().task_queue + QUEUE_SUFFIX,
                result_type=RemoteAnswer,
                schedule_to_start_timeout=FOLLOW_START_TIMEOUT,
                start_to_close_timeout=FOLLOW_TIMEOUT,
                heartbeat_timeout=HEARTBEAT,
                retry_policy=ONCE,
            )
        except ActivityError as error:
            workflow.logger.info("a stream was cut, the task is looked at instead: %s", error.cause)
            return RemoteAnswer()

    async def _cancel(self) -> RemoteAnswer | None:
        try:
            return await workflow.execute_activity(
                REMOTE_CANCEL,
                self._at,
                result_type=RemoteAnswer,
                start_to_close_timeout=CANCEL_TIMEOUT,
                heartbeat_timeout=HEARTBEAT,
                retry_policy=ONCE,
            )
        except ActivityError as error:
            workflow.logger.warning("a cancel was cut, it is tried again: %s", error.cause)
            return None

    async def _unless_cancelled(self, work: Coroutine[Any, Any, T], grace: timedelta = timedelta()) -> T | None:
        """Await work; `None` if it failed, or was cut by a cancel: then it is not known what it did."""
        task = asyncio.create_task(work)
        await workflow.wait_condition(lambda: task.done() or self._is_cancelled)
        if grace and not task.done():
            with suppress(TimeoutError):
                await workflow.wait_condition(task.done, timeout=grace)
        if not task.done():
            task.cancel()
        try:
            return await task
        except (asyncio.CancelledError, ActivityError) as error:
            workflow.logger.info("it is not known what came of a call: %r", error)
            self._at = self._at.model_copy(update={"is_again": True})
            return None

    async def _roll_if_long(self) -> None:
        """Go on as a new run when the history is long."""
        info = workflow.info()
        is_long = info.get_current_history_length() >= ROLL_AT_EVENTS or info.is_continue_as_new_suggested()
        if is_long and not self._is_cancelled and not self._at.child.state.is_terminal:
            workflow.continue_as_new(self._at)


def _ending(answer: RemoteAnswer) -> str | None:
    """Say how a cancelled task ended; `None` if it has not, as far as known."""
    if answer.fault is not None:
        return TaskState.CANCELED.value if answer.fault.kind == "gone" else None
    if answer.seen is None:
        return TaskState.CANCELED.value
    return answer.seen.state.value if answer.seen.state.is_terminal else None
