"""A task's state as its run knows it, and the only ways to change it: every change goes to the store first.

The store decides what is true: a commit's answer is adopted, whatever it says. One lock covers decide, commit and
adopt, against every other handler and `run`: nothing that is decided from the state is decided outside it.
"""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

from temporalio import workflow
from temporalio.exceptions import ApplicationError, FailureError

from tiny_harness.contracts import Delivery, TaskSnapshot
from tiny_harness_engine.calls import (
    COMMIT,
    COMMIT_RETRY,
    COMMIT_TIMEOUT,
    LOAD,
    LOCAL_COMMIT_RETRY,
    LOCAL_COMMIT_TIMEOUT,
    LOCAL_TAKE_TIMEOUT,
    TAKE,
    TAKE_TIMEOUT,
    CommitAnswer,
    CommitRequest,
    Judgement,
    TakeAnswer,
    TakeRequest,
)
from tiny_harness_engine.core import lifecycle
from tiny_harness_engine.core.drafts import Decision

Decide = Callable[[TaskSnapshot | None], Decision | None]


class Ledger:
    """The state, and what writes it. Call everything that writes under `lock`."""

    def __init__(self, task_id: str) -> None:
        self.task_id: Final = task_id
        self.lock: Final = asyncio.Lock()
        self.state: TaskSnapshot | None = None
        self.news = 0
        """Counts what may give `run` something to do."""
        self.changed_at = workflow.now()
        self.on_change: list[Callable[[], None]] = []
        self._is_store_behind = False
        """Whether the store's last answer was older than the state: it was restored, or another server took over."""

    @property
    def is_open(self) -> bool:
        """Whether there is a task that has not ended."""
        return self.state is not None and not self.state.state.is_terminal

    @property
    def is_running(self) -> bool:
        """Whether a turn is to be worked on."""
        return self.state is not None and lifecycle.is_running(self.state)

    def is_at(self, state: TaskSnapshot) -> bool:
        """Whether the turn and step of an earlier state are still the running ones."""
        now = self.state
        return now is not None and self.is_running and (now.turn, now.step) == (state.turn, state.step)

    async def take(self, delivery: Delivery, judgement: Judgement | None = None) -> TakeAnswer:
        """Take a message, or learn why not."""
        request = TakeRequest(task_id=self.task_id, delivery=delivery, snapshot=self.state, judgement=judgement)
        answer: TakeAnswer = await self._call(TAKE, request, TakeAnswer, LOCAL_TAKE_TIMEOUT, TAKE_TIMEOUT)
        self._adopt(answer.snapshot)
        return answer

    async def commit(self, cause: str, decide: Decide) -> None:
        """Decide and write until the cause is in the store or there is nothing to write."""
        while True:
            before = self.state
            decision = decide(before)
            if before is None or decision is None or not decision.drafts:
                return
            request = CommitRequest(task_id=self.task_id, cause=cause, head=before.head, decision=decision)
            answer: CommitAnswer = await self._call(COMMIT, request, CommitAnswer, LOCAL_COMMIT_TIMEOUT, COMMIT_TIMEOUT)
            self._adopt(answer.snapshot)
            if answer.seq is not None or not self.is_open:
                return

    async def load(self, *, refresh: bool = False) -> None:
        """Load the state from the store, if there is none yet or somebody may be ahead."""
        if self.state is not None and not refresh:
            return
        answer: CommitAnswer = await workflow.execute_local_activity(
            LOAD,
            self.task_id,
            result_type=CommitAnswer,
            start_to_close_timeout=LOCAL_COMMIT_TIMEOUT,
            retry_policy=LOCAL_COMMIT_RETRY,
        )
        if self.state is None or head_of(answer.snapshot) != self.state.head:
            self._adopt(answer.snapshot)

    async def restore(self) -> None:
        """Write the state anew if the store has lost commits that it knows of; what was said in them is gone."""
        state = self.state
        if state is not None and self._is_store_behind:
            await self.commit(f"restored:{state.head}", lambda now: lifecycle.restore(now) if now else None)

    async def _call(self, name: str, request: Any, answer: type[Any], quick: timedelta, patient: timedelta) -> Any:
        """Run an activity here and now; if the store does not answer at once, as one that may take its time."""
        try:
            return await workflow.execute_local_activity(
                name, request, result_type=answer, start_to_close_timeout=quick, retry_policy=LOCAL_COMMIT_RETRY
            )
        except FailureError as error:
            if is_final(error):
                raise
            workflow.logger.warning("%s goes on as a normal activity: %s", name, error)
        return await workflow.execute_activity(
            name, request, result_type=answer, start_to_close_timeout=patient, retry_policy=COMMIT_RETRY
        )

    def _adopt(self, found: TaskSnapshot | None) -> None:
        self._is_store_behind = head_of(found) < head_of(self.state)
        if self._is_store_behind:
            # Going back would use numbers twice that streams have seen: the next commit marks them as lost.
            workflow.logger.warning(
                "the store has lost commits: it is at %s, the task at %s", head_of(found), head_of(self.state)
            )
            return
        self.state = found
        self.news += 1
        self.changed_at = workflow.now()
        for tell in self.on_change:
            tell()


def head_of(state: TaskSnapshot | None) -> int:
    """The number of a task's last event, 0 before there is one."""
    return state.head if state is not None else 0


def is_final(error: FailureError) -> bool:
    """Whether an activity said that trying again cannot help."""
    return isinstance(error, ApplicationError) and error.non_retryable
