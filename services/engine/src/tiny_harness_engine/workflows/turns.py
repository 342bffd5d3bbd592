"""Works on a task's running turn, step by step: the model is asked, and what it asks for is carried out."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from datetime import timedelta
from typing import Any, Final, TypeVar

from temporalio import workflow
from temporalio.exceptions import ActivityError

from tiny_harness.contracts import TaskSnapshot
from tiny_harness.errors import HarnessError
from tiny_harness_engine.calls import (
    LOST_ATTEMPTS,
    MODEL_ATTEMPTS,
    MODEL_BACKOFF,
    STEP,
    STEP_HEARTBEAT,
    STEP_RETRY,
    STEP_TIMEOUT,
    StepAnswer,
    StepRequest,
)
from tiny_harness_engine.core import lifecycle, steps
from tiny_harness_engine.core.drafts import Decision
from tiny_harness_engine.failures import failed_step
from tiny_harness_engine.workflows.ledger import Ledger
from tiny_harness_engine.workflows.outage import StoreAway, is_outage, outage_pause_s
from tiny_harness_engine.workflows.tools import run_tools

MAX_STEPS: Final = 1_000
"""Steps that one turn may have: a model that goes round in circles is stopped."""

T = TypeVar("T")


class Turns:
    """The turns of a task, one at a time."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._step: asyncio.Task[Any] | None = None
        self._asked: TaskSnapshot | None = None  # the task as it was when the running step was asked
        ledger.on_change.append(self._cut)

    async def round(self) -> bool:
        """Work on the running turn; false if it could not even be ended."""
        state = self._ledger.state
        if state is None:
            return False
        try:
            answer = await self._ask_model(state)
            if answer is None:
                return True
            if answer.calls and state.step >= MAX_STEPS:
                await self._end(state, StepAnswer(failure=f"it asked for tools {MAX_STEPS} times in one turn"))
            elif answer.calls and answer.failure is None and answer.rejected is None:
                await self._carry_out(state, answer)
            else:
                await self._end(state, answer)
        except Exception:  # noqa: BLE001 - a bug costs one turn, never the task
            workflow.logger.exception("turn %s failed", state.turn)
            return await self._park_broken(state)
        return True

    async def _carry_out(self, state: TaskSnapshot, answer: StepAnswer) -> None:
        """Run the tools that the model asked for, then go on to the next step, or ask somebody."""
        turn, step = state.turn, state.step
        tools = tuple(plan for plan in answer.calls if plan.is_tool)
        answers = await self._unless_cut(state, run_tools(state, tools))
        if answers is None:
            return

        def pause_first(current: TaskSnapshot | None) -> Decision | None:
            return steps.pause_step(current, turn, step, answer.calls, answers) if current else None

        def decide(current: TaskSnapshot | None) -> Decision | None:
            if current is None:
                return None
            return steps.end_step(current, turn, step, answer.calls, answers, answer.limits, answer.report)

        async with self._ledger.lock:
            asked = len(state.approvals)
            await self._ledger.commit(f"ask:{turn}:{step}:{asked}", pause_first)
            now = self._ledger.state
            # Somebody may have answered before this run knew that it had asked: then the step goes on with that.
            if now is not None and now.approvals == state.approvals and self._ledger.is_at(state):
                await self._ledger.commit(f"step:{turn}:{step}", decide)

    async def _end(self, state: TaskSnapshot, answer: StepAnswer) -> None:
        turn, step = state.turn, state.step

        def decide(current: TaskSnapshot | None) -> Decision | None:
            if current is None:
                return None
            if answer.rejected is not None:
                return lifecycle.reject(current, answer.rejected)
            if answer.over_budget is not None:
                return steps.pause_for_budget(current, turn, step, answer.over_budget)
            if answer.failure is not None:
                return lifecycle.fail_turn(current, turn, step, answer.failure, answer.report)
            return lifecycle.end_turn(current, turn, step, answer.report)

        cause = f"step:{turn}:{step}" if answer.over_budget is None else f"budget:{turn}:{step}:{state.budgets}"
        async with self._ledger.lock:
            await self._ledger.commit(cause, decide)

    async def _park_broken(self, state: TaskSnapshot) -> bool:
        try:
            await self._end(state, StepAnswer(failure=str(HarnessError())))
        except Exception:  # noqa: BLE001 - stays WORKING and is tried again with the next input or reconcile
            workflow.logger.exception("turn %s could not be ended", state.turn)
            return False
        return True

    async def _ask_model(self, state: TaskSnapshot) -> StepAnswer | None:
        """Run the step until it answers or fails for good; `None` if the turn is over before."""
        failed = lost = away = 0
        while self._ledger.is_at(state):
            try:
                answer = await self._try_step(state, failed + lost + away + 1, failed)
            except StoreAway:
                away += 1
                await pause(timedelta(seconds=outage_pause_s(away)), lambda: not self._ledger.is_at(state))
                continue
            if answer is None:
                lost += 1
                if lost >= LOST_ATTEMPTS:
                    return StepAnswer(failure="the step was lost again and again")
                continue
            failed += 1
            if answer.failure is None or not answer.is_transient:
                return answer
            if answer.pause_s is None and failed >= MODEL_ATTEMPTS:
                return answer
            own = MODEL_BACKOFF[min(failed, len(MODEL_BACKOFF)) - 1]
            wait = own if answer.pause_s is None else timedelta(seconds=answer.pause_s)
            await pause(wait, lambda: not self._ledger.is_at(state))
        return None

    async def _try_step(self, state: TaskSnapshot, attempt: int, failures: int) -> StepAnswer | None:
        """Run the step once; `None` if it was cut, or its worker went away.

        Raises:
            StoreAway: It could not even begin, or not be written down.
        """
        try:
            return await self._unless_cut(state, _run_step(state, attempt, failures))
        except ActivityError as error:
            workflow.logger.info("step %s:%s was stopped: %s", state.turn, state.step, error.cause)
            if is_outage(error):
                raise StoreAway from error
            return failed_step(error.cause)

    async def _unless_cut(self, state: TaskSnapshot, work: Coroutine[Any, Any, T]) -> T | None:
        """Await work of a step; `None` if its turn was cut meanwhile."""
        self._asked = state
        self._step = asyncio.create_task(work)
        try:
            return await self._step
        except asyncio.CancelledError:
            return None
        finally:
            self._step = None

    def _cut(self) -> None:
        """Stop a step whose turn is over, also when the next one has begun."""
        if self._step is not None and self._asked is not None and not self._ledger.is_at(self._asked):
            self._step.cancel()


async def _run_step(state: TaskSnapshot, attempt: int, failures: int) -> StepAnswer:
    request = StepRequest(
        task_id=state.task_id,
        context_id=state.context_id,
        turn=state.turn,
        step=state.step,
        attempt=attempt,
        failures=failures,
        reading=state.reading,
        model=state.model,
        effort=state.effort,
    )
    return await workflow.execute_activity(
        STEP,
        request,
        result_type=StepAnswer,
        start_to_close_timeout=STEP_TIMEOUT,
        heartbeat_timeout=STEP_HEARTBEAT,
        retry_policy=STEP_RETRY,
    )


async def pause(duration: timedelta, is_over: Callable[[], bool]) -> None:
    """Wait for a while, or until there is no more reason to."""
    with suppress(TimeoutError):
        await workflow.wait_condition(is_over, timeout=duration)
