"""Writes decisions to the store and tells the bus: the only writer of task data."""

import json
from collections.abc import Callable
from datetime import datetime

from temporalio import activity
from temporalio.exceptions import ApplicationError

from tiny_harness.bus import Bus, Frame
from tiny_harness.contracts import TaskSnapshot
from tiny_harness.errors import HarnessError, Unavailable
from tiny_harness.ext.task import TaskText
from tiny_harness.intake import read_message
from tiny_harness.store import Commit, NewEvent, Store
from tiny_harness_engine.calls import COMMIT, LOAD, CommitAnswer, CommitRequest
from tiny_harness_engine.core.drafts import Decision, Draft
from tiny_harness_engine.core.naming import apply_patch, first_text
from tiny_harness_engine.core.wire import Json, agent_message, render
from tiny_harness_engine.failures import to_failure
from tiny_harness_engine.records import StepRecord


class CommitActivities:
    """`commit` and `load`, bound to a store and a bus."""

    def __init__(self, store: Store, bus: Bus) -> None:
        self._store = store
        self._bus = bus

    @activity.defn(name=COMMIT)
    async def commit(self, request: CommitRequest) -> CommitAnswer:
        """Write a decision by its cause; a repeat, or a task that has gone on, writes nothing."""
        try:
            return await self._commit(request)
        except (Unavailable, ApplicationError):
            raise
        except Exception as error:
            activity.logger.exception("commit %s failed", request.cause)
            raise to_failure(HarnessError()) from error

    async def _commit(self, request: CommitRequest) -> CommitAnswer:
        decision = request.decision
        text = await self._text(request)
        events = [
            NewEvent(draft.kind, await self._renderer(request, draft, text), decision.digest if part == 0 else None)
            for part, draft in enumerate(decision.drafts)
        ]
        is_told = request.new_task is not None or decision.patch is not None
        done = await self._store.commit(
            Commit(
                task_id=request.task_id,
                cause=request.cause,
                head=request.head,
                events=events,
                snapshot=decision.snapshot,
                text=text.model_dump_json(exclude_none=True) if is_told else "",
            )
        )
        written = done.written
        news = done.events
        if written is not None and not news and decision.drafts:
            # Known already: maybe by an attempt of ours that was given up before it could tell anybody.
            news = await self._store.events(request.task_id, written.seq - 1, len(decision.drafts))
        for event in news:
            if event.kind != "lost":
                self._bus.publish(Frame(event.task_id, event.seq, event.payload, event.kind))
        return CommitAnswer(
            snapshot=done.snapshot,
            seq=written.seq if written else None,
            digest=written.digest if written else None,
            wrote=bool(done.events),
        )

    @activity.defn(name=LOAD)
    async def load(self, task_id: str) -> CommitAnswer:
        """Load a task's snapshot."""
        record = await self._store.task(task_id)
        return CommitAnswer(snapshot=record.snapshot if record else None)

    async def _text(self, request: CommitRequest) -> TaskText:
        decision = request.decision
        if request.new_task is not None:
            return first_text(decision.patch, _first_words(decision))
        if decision.patch is None:
            return TaskText()
        record = await self._store.task(request.task_id)
        before = TaskText.model_validate_json(record.text) if record else TaskText()
        return apply_patch(before, decision.patch)

    async def _renderer(self, request: CommitRequest, draft: Draft, text: TaskText) -> Callable[[int, datetime], str]:
        snapshot = request.decision.snapshot
        message = await self._agent_message(request, draft, snapshot)
        return lambda seq, at: render(draft, snapshot, text, message, seq, at)

    async def _agent_message(self, request: CommitRequest, draft: Draft, snapshot: TaskSnapshot) -> Json | None:
        if draft.words is not None:
            return agent_message(snapshot, f"{request.task_id}.{request.cause}", draft.words)
        if draft.turn is None or draft.step is None:
            return None
        record = await self._store.step(request.task_id, draft.turn, draft.step)
        if record is None:
            raise ApplicationError(f"no record of turn {draft.turn}, step {draft.step}", non_retryable=True)
        step = StepRecord.model_validate_json(record)
        return agent_message(snapshot, step.message_id, step.text)


def _first_words(decision: Decision) -> str:
    received = decision.drafts[0].received if decision.drafts else None
    return read_message(json.loads(received)).text if received else ""
