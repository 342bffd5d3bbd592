"""Tells hooks that an attempt to ask a model has failed, or that another one begins. What they do changes nothing."""

import logging
from typing import Any, Literal

from tiny_harness.errors import Unavailable
from tiny_harness.hooks import Hooks
from tiny_harness.hooks.contexts import ActivityContext
from tiny_harness.store import Store
from tiny_harness_engine.calls import StepAnswer, StepRequest
from tiny_harness_engine.subject import subject_of

log = logging.getLogger(__name__)


class Attempts:
    """The attempts at a step, bound to a store and to hooks."""

    def __init__(self, store: Store, hooks: Hooks) -> None:
        self._store = store
        self._hooks = hooks

    async def failed(self, request: StepRequest, answer: StepAnswer) -> None:
        """Tell that this attempt failed, and whether there will be another."""
        told = {"error": answer.failure or "", "will_retry": answer.is_transient, "pause_s": answer.pause_s or 0.0}
        await self._tell("activity.failed", request, told)

    async def retried(self, request: StepRequest) -> None:
        """Tell that this attempt comes after one that failed, if it does."""
        if request.failures:
            await self._tell("activity.retried", request, {})

    async def _tell(
        self, operation: Literal["activity.failed", "activity.retried"], request: StepRequest, told: dict[str, Any]
    ) -> None:
        if not self._hooks.at(operation):
            return
        try:
            task = await self._store.task(request.task_id)
        except Unavailable as error:
            log.warning("%s is told to nobody: %s", operation, error)
            return
        if task is not None:
            facts = subject_of(task).facts(operation, request.failures + 1)
            context = ActivityContext(**facts, activity="model", turn=request.turn, step=request.step, **told)
            await self._hooks.run(context)
