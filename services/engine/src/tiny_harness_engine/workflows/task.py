"""One durable workflow per task (DESIGN: a task's life; read that section before changing a line).

Turns run in `run` alone; handlers decide, commit and cut. One lock covers decide, commit and adopt, against every other
handler and `run`: nothing that is decided from the task's state is decided outside it. The state lives in the store: a
run needs only the task's id, and adopts whatever each commit says is there.
"""

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Final

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError, FailureError

with workflow.unsafe.imports_passed_through():
    from tiny_harness import contracts
    from tiny_harness.contracts import Cancel, Delivery, Receipt, StartTask, TaskSnapshot
    from tiny_harness.errors import HarnessError, InvalidInput, TaskEnded, Unavailable
    from tiny_harness.intake import Intake, authorise, fingerprint, message_cause, read_message

    # By name: `from tiny_harness_engine import calls` would load a copy of the module into every run's sandbox.
    from tiny_harness_engine.calls import (
        COMMIT,
        COMMIT_RETRY,
        COMMIT_TIMEOUT,
        LOAD,
        LOCAL_COMMIT_RETRY,
        LOCAL_COMMIT_TIMEOUT,
        LOST_ATTEMPTS,
        MODEL_ATTEMPTS,
        MODEL_BACKOFF,
        STEP,
        STEP_HEARTBEAT,
        STEP_RETRY,
        STEP_TIMEOUT,
        CommitAnswer,
        CommitRequest,
        StepAnswer,
        StepRequest,
    )
    from tiny_harness_engine.core import lifecycle
    from tiny_harness_engine.core.drafts import Decision
    from tiny_harness_engine.failures import failed_step, to_failure

ROLL_AT_EVENTS: Final = 200
"""A run with this many events goes on as a new one."""
IDLE_ROLL_AT_EVENTS: Final = 20
IDLE_ROLL_AFTER: Final = timedelta(minutes=10)
"""A parked run with more events than that goes on as a new one after this time: waking costs 1 ms per event."""

STORE_PATIENCE: Final = timedelta(seconds=30)
"""How long a run that could not load its task waits before it tries again."""

Decide = Callable[[TaskSnapshot | None], Decision | None]


@workflow.defn(name=contracts.TASK_WORKFLOW)
class TaskWorkflow:
    """A task's only writer."""

    @workflow.init
    def __init__(self, start: StartTask) -> None:
        self._start = start
        self._lock = asyncio.Lock()
        self._state: TaskSnapshot | None = None
        self._step: asyncio.Task[StepAnswer] | None = None
        self._asked: TaskSnapshot | None = None  # the task as it was when the running step was asked
        self._news = 0  # counts what may give `run` something to do
        self._idle_since = workflow.now()
        self._idle_timer: asyncio.Task[None] | None = None

    @workflow.run
    async def run(self, start: StartTask) -> None:
        """Work until the task has ended. A run that finds no task ends at once."""
        await self._open(start)
        while self._state is not None and not self._state.state.is_terminal:
            if not self._is_running():
                await self._park()
            elif not await self._round():
                await self._wait_for_news()
            await self._roll_if_long()
        await workflow.wait_condition(workflow.all_handlers_finished)

    @workflow.update(name=contracts.DELIVER)
    async def deliver(self, delivery: Delivery) -> Receipt:
        """Take a message: decide, commit, answer with a receipt. Waits for no turn."""
        try:
            async with self._lock:
                return await self._deliver(delivery)
        except HarnessError as error:
            raise to_failure(error) from error
        except FailureError as error:
            if _is_ours(error):
                raise
            raise to_failure(Unavailable("the store cannot answer now")) from error
        except Exception as error:
            workflow.logger.exception("deliver failed")
            raise to_failure(HarnessError()) from error

    @deliver.validator
    def _check_delivery(self, delivery: Delivery) -> None:
        try:
            intake = _read(delivery)
            if self._state is not None:
                authorise(self._state.task_id, self._state.participants, delivery.sender.id, intake)
        except HarnessError as error:
            raise to_failure(error) from error

    @workflow.signal(name=contracts.CANCEL)
    async def cancel(self, cancel: Cancel) -> None:
        """End the task as CANCELED, whatever it is doing."""
        del cancel  # the request and who made it are in the store
        await self._guarded("cancel", lambda state: lifecycle.cancel(state) if state else None)

    @workflow.signal(name=contracts.RECONCILE)
    async def reconcile(self) -> None:
        """Look whether the store is ahead: an input may have been committed by a worker that died."""
        await self._guarded("reconcile", None)

    @workflow.query(name=contracts.SNAPSHOT)
    def snapshot(self) -> TaskSnapshot | None:
        """Tell the state that this run knows."""
        return self._state

    async def _open(self, start: StartTask) -> None:
        """Take the first message, which may have come by its update already, and load the task."""
        while not await self._try_open(start):
            await self._pause(STORE_PATIENCE, lambda: self._state is not None)

    async def _try_open(self, start: StartTask) -> bool:
        try:
            async with self._lock:
                if self._state is None and start.first is not None:
                    await self._deliver(start.first)
                await self._load()
        except HarnessError as error:
            workflow.logger.info("first message refused: %s", error)
        except FailureError as error:
            workflow.logger.warning("the store cannot answer: %s", error)
            return False
        except Exception as error:
            workflow.logger.exception("opening failed")
            raise to_failure(HarnessError()) from error
        return True

    async def _deliver(self, delivery: Delivery) -> Receipt:
        intake = _read(delivery)
        cause = message_cause(intake.message_id)
        if self._state is None and delivery.new_task is None:
            await self._load()
        made: list[Decision] = []

        def decide(state: TaskSnapshot | None) -> Decision | None:
            made.append(self._decide_delivery(state, delivery, intake))
            return made[-1]

        answer = await self._commit(cause, decide, delivery)
        decision = made[-1]
        if answer.seq is None:
            if self._state is not None and self._state.state.is_terminal:
                raise TaskEnded(self._state.task_id, self._state.state.word)
            return Receipt(seq=decision.snapshot.head, received_as=decision.received_as)
        if answer.digest is not None and answer.digest != fingerprint(delivery.sender.id, intake):
            raise InvalidInput("reused_message_id", "message.messageId", "was used for other content before")
        if not answer.wrote:
            return Receipt(seq=answer.seq, received_as="repeat")
        return Receipt(seq=answer.seq, received_as=decision.received_as, turn=decision.turn)

    def _decide_delivery(self, state: TaskSnapshot | None, delivery: Delivery, intake: Intake) -> Decision:
        if state is None:
            return lifecycle.open_task(self._start.task_id, delivery, intake)
        try:
            return lifecycle.accept(state, delivery, intake)
        except TaskEnded:
            # A repeat of a message that came in before the end still gets its receipt: ask the store for its cause.
            return Decision(snapshot=state)

    async def _guarded(self, cause: str, decide: Decide | None) -> None:
        try:
            async with self._lock:
                await self._load(refresh=decide is None)
                if decide is not None and self._state is not None:
                    await self._commit(cause, decide)
        except Exception:  # noqa: BLE001 - a bug costs one call: nobody waits for a signal, housekeeping sends it again
            workflow.logger.exception("%s failed", cause)
        self._news += 1

    async def _round(self) -> bool:
        """Work on the running turn; false if it could not even be ended."""
        state = self._state
        if state is None:
            return False
        try:
            answer = await self._ask_model(state)
            if answer is not None:
                await self._end_turn(state, answer.failure)
        except Exception:  # noqa: BLE001 - a bug costs one turn, never the task
            workflow.logger.exception("turn %s failed", state.turn)
            return await self._park_broken(state)
        return True

    async def _end_turn(self, state: TaskSnapshot, failure: str | None) -> None:
        turn, step = state.turn, state.step

        def decide(current: TaskSnapshot | None) -> Decision | None:
            if current is None:
                return None
            if failure is None:
                return lifecycle.end_turn(current, turn, step)
            return lifecycle.fail_turn(current, turn, step, failure)

        async with self._lock:
            await self._commit(f"step:{turn}:{step}", decide)

    async def _park_broken(self, state: TaskSnapshot) -> bool:
        try:
            await self._end_turn(state, str(HarnessError()))
        except Exception:  # noqa: BLE001 - stays WORKING and is tried again with the next input or reconcile
            workflow.logger.exception("turn %s could not be ended", state.turn)
            return False
        return True

    async def _ask_model(self, state: TaskSnapshot) -> StepAnswer | None:
        """Run the step until it answers or fails for good; `None` if the turn is over before."""
        failed = lost = 0
        while self._is_same_turn(state):
            answer = await self._try_step(state, attempt=failed + lost + 1)
            if answer is None:
                lost += 1
                if lost >= LOST_ATTEMPTS:
                    return StepAnswer(failure="the step was lost again and again")
                continue
            failed += 1
            if answer.failure is None or not answer.is_transient or failed >= MODEL_ATTEMPTS:
                return answer
            await self._pause(MODEL_BACKOFF[failed - 1], lambda: not self._is_same_turn(state))
        return None

    async def _try_step(self, state: TaskSnapshot, attempt: int) -> StepAnswer | None:
        """Run the step once; `None` if it was cut, or its worker went away."""
        self._asked = state
        self._step = asyncio.create_task(self._run_step(state, attempt))
        try:
            return await self._step
        except asyncio.CancelledError:
            return None
        except ActivityError as error:
            workflow.logger.info("step %s:%s was stopped: %s", state.turn, state.step, error.cause)
            return failed_step(error.cause)
        finally:
            self._step = None

    async def _run_step(self, state: TaskSnapshot, attempt: int) -> StepAnswer:
        request = StepRequest(
            task_id=state.task_id,
            context_id=state.context_id,
            turn=state.turn,
            step=state.step,
            attempt=attempt,
            reading=state.reading,
        )
        return await workflow.execute_activity(
            STEP,
            request,
            result_type=StepAnswer,
            start_to_close_timeout=STEP_TIMEOUT,
            heartbeat_timeout=STEP_HEARTBEAT,
            retry_policy=STEP_RETRY,
        )

    async def _pause(self, duration: timedelta, is_over: Callable[[], bool]) -> None:
        """Wait for a while, or until there is no more reason to."""
        with suppress(TimeoutError):
            await workflow.wait_condition(is_over, timeout=duration)

    def _cut(self) -> None:
        """Stop a step whose turn is over, also when the next one has begun."""
        if self._step is not None and self._asked is not None and not self._is_same_turn(self._asked):
            self._step.cancel()

    async def _commit(self, cause: str, decide: Decide, delivery: Delivery | None = None) -> CommitAnswer:
        """Decide and write until the cause is in the store or there is nothing to write. Call under the lock."""
        while True:
            before = self._state
            decision = decide(before)
            if decision is None or (not decision.drafts and before is not None and not before.state.is_terminal):
                return CommitAnswer(snapshot=before)
            request = CommitRequest(
                task_id=self._start.task_id,
                cause=cause,
                head=before.head if before else 0,
                decision=decision,
                new_task=delivery.new_task if delivery and before is None else None,
            )
            answer = await self._write(request)
            self._adopt(answer)
            if answer.seq is not None or self._state is None or self._state.state.is_terminal:
                return answer

    async def _write(self, request: CommitRequest) -> CommitAnswer:
        try:
            return await workflow.execute_local_activity(
                COMMIT,
                request,
                result_type=CommitAnswer,
                start_to_close_timeout=LOCAL_COMMIT_TIMEOUT,
                retry_policy=LOCAL_COMMIT_RETRY,
            )
        except FailureError as error:
            if _is_ours(error):
                raise
            workflow.logger.warning("commit goes on as a normal activity: %s", error)
        return await workflow.execute_activity(
            COMMIT,
            request,
            result_type=CommitAnswer,
            start_to_close_timeout=COMMIT_TIMEOUT,
            retry_policy=COMMIT_RETRY,
        )

    async def _load(self, refresh: bool = False) -> None:
        if self._state is not None and not refresh:
            return
        answer = await workflow.execute_local_activity(
            LOAD,
            self._start.task_id,
            result_type=CommitAnswer,
            start_to_close_timeout=LOCAL_COMMIT_TIMEOUT,
            retry_policy=LOCAL_COMMIT_RETRY,
        )
        if self._state is None or (answer.snapshot is not None and answer.snapshot.head > self._state.head):
            self._adopt(answer)

    def _adopt(self, answer: CommitAnswer) -> None:
        self._state = answer.snapshot
        self._news += 1
        self._idle_since = workflow.now()
        self._cut()

    def _is_running(self) -> bool:
        return self._state is not None and lifecycle.is_running(self._state)

    def _is_same_turn(self, state: TaskSnapshot) -> bool:
        now = self._state
        return now is not None and self._is_running() and (now.turn, now.step) == (state.turn, state.step)

    async def _park(self) -> None:
        """Wait until there is something to do; a long history is rolled over when nothing happens for a while."""
        length = workflow.info().get_current_history_length()
        if length > IDLE_ROLL_AT_EVENTS and self._idle_timer is None:
            self._idle_timer = asyncio.create_task(self._wake_when_idle())
        await self._wait_for_news()

    async def _wake_when_idle(self) -> None:
        await asyncio.sleep(IDLE_ROLL_AFTER.total_seconds())
        self._idle_timer = None
        self._news += 1

    async def _wait_for_news(self) -> None:
        seen = self._news
        await workflow.wait_condition(lambda: self._news != seen)

    async def _roll_if_long(self) -> None:
        """Go on as a new run, which loads the task anew, when the history is long. Only between steps."""
        if not self._should_roll():
            return
        await workflow.wait_condition(workflow.all_handlers_finished)
        if self._state is not None and not self._state.state.is_terminal:
            workflow.continue_as_new(StartTask(task_id=self._start.task_id))

    def _should_roll(self) -> bool:
        info = workflow.info()
        length = info.get_current_history_length()
        idle = not self._is_running() and workflow.now() - self._idle_since >= IDLE_ROLL_AFTER
        return (
            length >= ROLL_AT_EVENTS or info.is_continue_as_new_suggested() or (idle and length > IDLE_ROLL_AT_EVENTS)
        )


def _is_ours(error: FailureError) -> bool:
    """Whether an activity said that trying again cannot help."""
    return isinstance(error, ApplicationError) and error.non_retryable


def _read(delivery: Delivery) -> Intake:
    try:
        message = json.loads(delivery.message)
    except ValueError:
        raise InvalidInput("invalid_params", "message", "is no JSON") from None
    return read_message(message)
