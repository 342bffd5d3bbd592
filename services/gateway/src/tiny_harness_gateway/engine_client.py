"""Takes inputs to the engine: A2A calls become workflow updates and signals here, and nowhere else."""

import asyncio
import logging
import uuid
from collections.abc import Awaitable
from contextlib import suppress
from datetime import timedelta
from typing import Any, Final, Protocol, TypeVar

from temporalio.client import (
    Client,
    WithStartWorkflowOperation,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import ApplicationError, WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from tiny_harness import contracts
from tiny_harness.contracts import Cancel, Delivery, Receipt, StartTask
from tiny_harness.errors import HarnessError, Unavailable, unpack

T = TypeVar("T")

log = logging.getLogger(__name__)

DEADLINE: Final = timedelta(seconds=10)
READY_PAUSES_S: Final = (0.1, 0.3, 0.6)
"""Pauses before an update is sent again that met a run which was just closing, or starting."""
STARTS_AT_ONCE: Final = 16
"""More at a time only makes Temporal time out: the rest wait here, at the same throughput."""

_BUSY: Final = frozenset(
    {
        RPCStatusCode.RESOURCE_EXHAUSTED,
        RPCStatusCode.UNAVAILABLE,
        RPCStatusCode.DEADLINE_EXCEEDED,
        RPCStatusCode.CANCELLED,
        RPCStatusCode.ABORTED,
    }
)


class _NoRun(Exception):
    """Temporal has no open run of the task."""


class _NotReady(Exception):
    """The task's run could not take an update at this moment: nothing of it was taken."""


class EngineClient(Protocol):
    """The engine, as the gateway needs it."""

    async def deliver(self, task_id: str, delivery: Delivery) -> Receipt:
        """Take a message to its task.

        Raises:
            HarnessError: The task refused it.
            Unavailable: No answer in time. The message may be in: send the same message id again.
        """
        ...

    async def cancel(self, task_id: str, cancel: Cancel) -> None:
        """Ask a task to end; answered by its state in the store.

        Raises:
            Unavailable: Temporal does not answer.
        """
        ...


class TemporalEngineClient:
    """Reaches the engine through Temporal."""

    def __init__(self, temporal: Client, task_queue: str) -> None:
        self._temporal = temporal
        self._task_queue = task_queue
        self._starts = asyncio.Semaphore(STARTS_AT_ONCE)

    async def deliver(self, task_id: str, delivery: Delivery) -> Receipt:
        for pause_s in READY_PAUSES_S:
            try:
                return await self._deliver(task_id, delivery)
            except _NotReady:
                await asyncio.sleep(pause_s)
        try:
            return await self._deliver(task_id, delivery)
        except _NotReady as error:
            raise Unavailable("the task was busy") from error

    async def _deliver(self, task_id: str, delivery: Delivery) -> Receipt:
        # A new id for each call: Temporal answers a known one with what it said before, a refusal that is no longer due
        # included. What makes a repeat a repeat is the message's id, and the task knows those (ADR 6).
        update_id = uuid.uuid4().hex
        start = StartTask(task_id=task_id, first=delivery if delivery.new_task else None)
        try:
            if start.first is None:
                return await self._update(task_id, delivery, update_id)
            return await self._start_and_update(start, delivery, update_id, WorkflowIDReusePolicy.REJECT_DUPLICATE)
        except (_NoRun, WorkflowAlreadyStartedError) as error:
            # The store says that the task is open, or not there: an idempotency key whose first message was refused.
            # A new run takes it up from the store, once more and no oftener.
            log.info("task %s has no run (%s): starting one", task_id, type(error).__name__)
        try:
            return await self._start_and_update(start, delivery, update_id, WorkflowIDReusePolicy.ALLOW_DUPLICATE)
        except _NoRun as error:
            raise Unavailable("the task was busy closing a run") from error

    async def cancel(self, task_id: str, cancel: Cancel) -> None:
        # A signal with a start: a task that has no run gets one. The run of a task that has ended ends at once.
        started = self._temporal.start_workflow(
            contracts.TASK_WORKFLOW,
            StartTask(task_id=task_id),
            **self._options(task_id, WorkflowIDReusePolicy.ALLOW_DUPLICATE),
            start_signal=contracts.CANCEL,
            start_signal_args=[cancel],
            rpc_timeout=DEADLINE,
        )
        try:
            await _bounded(started)
        except _NotReady as error:
            raise Unavailable("the engine cannot answer now") from error

    async def _start_and_update(
        self, start: StartTask, delivery: Delivery, update_id: str, reuse: WorkflowIDReusePolicy
    ) -> Receipt:
        operation: WithStartWorkflowOperation[Any, Any] = WithStartWorkflowOperation(
            contracts.TASK_WORKFLOW, start, **self._options(start.task_id, reuse)
        )
        async with self._starts:
            try:
                return await _bounded(
                    self._temporal.execute_update_with_start_workflow(
                        contracts.DELIVER,
                        delivery,
                        start_workflow_operation=operation,
                        id=update_id,
                        result_type=Receipt,
                        rpc_timeout=DEADLINE,
                    )
                )
            except BaseException:  # a cancelled call leaves a failure that nobody asks for, too
                await _take_failure(operation)
                raise

    async def _update(self, task_id: str, delivery: Delivery, update_id: str) -> Receipt:
        handle = self._temporal.get_workflow_handle(contracts.workflow_id(task_id))
        return await _bounded(
            handle.execute_update(contracts.DELIVER, delivery, id=update_id, result_type=Receipt, rpc_timeout=DEADLINE)
        )

    def _options(self, task_id: str, reuse: WorkflowIDReusePolicy) -> dict[str, Any]:
        return {
            "id": contracts.workflow_id(task_id),
            "task_queue": self._task_queue,
            "id_conflict_policy": WorkflowIDConflictPolicy.USE_EXISTING,
            "id_reuse_policy": reuse,
        }


async def _take_failure(operation: WithStartWorkflowOperation[Any, Any]) -> None:
    """Ask for the handle whose failure is told already: one that nobody asks for, asyncio logs as lost."""
    with suppress(Exception, asyncio.CancelledError):
        async with asyncio.timeout(0):
            await operation.workflow_handle()


async def _bounded(call: Awaitable[T]) -> T:
    """Await a call to Temporal within the deadline; failures come out as our errors, `_NoRun` or `_NotReady`."""
    try:
        async with asyncio.timeout(DEADLINE.total_seconds()):
            return await call
    except WorkflowUpdateFailedError as error:
        cause = error.cause
        if isinstance(cause, ApplicationError) and cause.details:
            raise unpack(cause.type or "", cause.details[0]) from error
        raise _NoRun from error  # it closed under the update: it ended, or went on as a new run
    except (WorkflowUpdateRPCTimeoutOrCancelledError, TimeoutError) as error:
        raise Unavailable("the engine did not answer in time") from error
    except RPCError as error:
        if error.status is RPCStatusCode.FAILED_PRECONDITION:
            raise _NotReady from error
        if error.status in _BUSY:
            raise Unavailable("the engine cannot answer now") from error
        if error.status is RPCStatusCode.NOT_FOUND:
            raise _NoRun from error
        log.exception("Temporal refused a call")
        raise HarnessError from error
