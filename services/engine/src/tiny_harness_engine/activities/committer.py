"""Writes decisions to the store, then tells the bus, observers and the parent: the only writer of task data."""

import asyncio
import json
import logging
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Final

from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError

from tiny_harness.bus import Bus, Frame
from tiny_harness.contracts import CHILD_CHANGED, ChildChanged, TaskSnapshot
from tiny_harness.errors import Unavailable
from tiny_harness.events import Event
from tiny_harness.ext.task import Criterion, TaskText
from tiny_harness.intake import read_message
from tiny_harness.store import Commit, NewEvent, Store
from tiny_harness_engine.agents.stand_ins import StandIns
from tiny_harness_engine.calls import CommitAnswer, CommitRequest
from tiny_harness_engine.core.drafts import Decision, Draft, NewChild
from tiny_harness_engine.core.naming import apply_patch, first_text
from tiny_harness_engine.core.notes import brief
from tiny_harness_engine.core.transcript import words_of
from tiny_harness_engine.core.wire import Json, agent_message, own_message, render
from tiny_harness_engine.records import CallResult, StepRecord
from tiny_harness_engine.runs import Runs
from tiny_harness_engine.supervisors import Supervisors

TEMPORAL_PATIENCE_S: Final = 1.0
"""How long a commit waits until a related task has been told, before it is tried again."""
LAST_WORDS_EVENTS: Final = 20
MAX_RESULT_CHARS: Final = 20_000
"""What a sub-task's result may have on its way to its parent; the whole is in the sub-task."""

Notify = Callable[[str], None]
"""Is told of a task that has new events."""

log = logging.getLogger(__name__)


class Committer:
    """Commits, bound to a store, a bus and Temporal."""

    def __init__(
        self,
        store: Store,
        bus: Bus,
        runs: Runs,
        stand_ins: StandIns,
        supervisors: Supervisors,
        notify: Sequence[Notify] = (),
    ) -> None:
        self.store = store
        self._bus = bus
        self._runs = runs
        self._stand_ins = stand_ins
        self.supervisors = supervisors
        self._notify = notify

    async def commit(self, request: CommitRequest) -> CommitAnswer:
        """Write a decision by its cause; a repeat, or a task that has gone on, writes nothing."""
        decision = request.decision
        await self._record(request)
        children = [await self.start_child(child) for child in decision.children]
        for remote in decision.remotes:
            await self._stand_ins.open(request.task_id, remote)
        events = [
            NewEvent(draft.kind, await self._renderer(request, draft), decision.digest if part == 0 else None)
            for part, draft in enumerate(decision.drafts)
        ]
        done = await self.store.commit(
            Commit(
                task_id=request.task_id,
                cause=request.cause,
                head=request.head,
                events=events,
                snapshot=decision.snapshot,
                text=await self._text(request),
                verdicts=decision.verdicts,
            )
        )
        written, news = done.written, done.events
        if written is not None and not news and decision.drafts:
            # Known already: maybe by an attempt of ours that was given up before it could tell anybody.
            news = await self.store.events(request.task_id, written.seq - 1, len(decision.drafts))
        await self._tell(news, decision, done.snapshot)
        for child in children:
            if child.head > 1:  # started by an attempt that died: what it told a parent without its row was lost
                await self.tell_parent(child)
        return CommitAnswer(
            snapshot=done.snapshot,
            seq=written.seq if written else None,
            digest=written.digest if written else None,
            wrote=bool(done.events),
        )

    async def _record(self, request: CommitRequest) -> None:
        """Keep the results of calls that needed no tool, before the step that they belong to is told of."""
        for result in request.decision.results:
            first = request.decision.drafts[0]
            record = CallResult(text=result.text, is_error=result.is_error).model_dump_json()
            await self.store.save_call(request.task_id, first.turn or 0, first.step or 0, result.call, record)

    async def start_child(self, new: NewChild) -> TaskSnapshot:
        """Make a sub-task; one that is there stays as it is.

        A parked one has no workflow yet: that starts when somebody writes to it.

        Returns:
            The sub-task as it is.
        """
        child = new.snapshot
        criteria = tuple(Criterion(text=text) for text in new.acceptance_criteria)
        text = first_text(None, new.goal).model_copy(
            update={
                "goal": new.goal,
                "description": new.description or None,
                "acceptance_criteria": criteria or None,
            }
        )
        is_parked = child.lifecycle == "conversation"
        draft = Draft(
            kind="task",
            state=child.state,
            sub_state=child.sub_state,
            turn=child.turn or None,
            received=None if is_parked else brief(child, new.goal),
            received_as="turn" if child.reading else None,
            tells_task=True,
        )
        done = await self.store.commit(
            Commit(
                task_id=child.task_id,
                cause=f"parent:{child.parent}",
                head=0,
                events=[NewEvent("task", lambda seq, at, _words: render(draft, child, text, None, seq, at))],
                snapshot=child,
                text=_dump(text),
            )
        )
        await self._tell(done.events, Decision(snapshot=child), done.snapshot)
        if done.snapshot.reading:
            await self._begin(child.task_id)
        return done.snapshot

    async def _begin(self, task_id: str, signal: str | None = None, *arguments: Any) -> None:
        try:
            async with asyncio.timeout(TEMPORAL_PATIENCE_S):
                await self._runs.begin(task_id, signal, *arguments)
        except (TimeoutError, RPCError) as error:
            log.warning("task %s could not be told %s: %s", task_id, signal or "to start", error)
            raise Unavailable("a related task cannot be told now") from error

    async def tell_parent(self, child: TaskSnapshot) -> None:
        """Signal a sub-task's parent how the sub-task is now. The same news twice does no harm.

        Raises:
            Unavailable: It could not be told; the caller is to try again.
        """
        parent = await self.store.task(child.parent) if child.parent else None
        if parent is None or parent.snapshot.state.is_terminal:
            return
        change = ChildChanged(
            task_id=child.task_id,
            seq=child.head,
            state=child.state,
            sub_state=child.sub_state,
            words=await self._last_words(child.task_id) if child.state.is_terminal else "",
        )
        await self._begin(parent.snapshot.task_id, CHILD_CHANGED, change)

    async def _last_words(self, task_id: str) -> str:
        """The last thing that was said on a task, by whom ever worked on it; its first event tells its brief."""
        for event in reversed(await self.store.words(task_id, LAST_WORDS_EVENTS)):
            words = words_of(event)
            if words and event.seq > 1:
                return words[:MAX_RESULT_CHARS]
        return ""

    async def _tell(self, news: Sequence[Event], decision: Decision, snapshot: TaskSnapshot) -> None:
        for event in news:
            if event.kind != "lost":
                self._bus.publish(Frame(event.task_id, event.seq, event.payload, event.kind))
        if not news:
            return
        for notify in self._notify:
            notify(snapshot.task_id)
        if _moves(decision):
            log.info(
                "task %s is %s (%s) at %s", snapshot.task_id, snapshot.state.word, snapshot.sub_state, snapshot.head
            )
            await self.tell_parent(snapshot)
        await self.supervisors.tell(snapshot)

    async def _text(self, request: CommitRequest) -> str:
        """The task's words afterwards, as JSON; empty if they stay as they are."""
        decision = request.decision
        if request.new_task is not None:
            return _dump(first_text(decision.patch, _first_words(decision)))
        if decision.patch is None:
            return ""
        record = await self.store.task(request.task_id)
        before = TaskText.model_validate_json(record.text) if record else TaskText()
        return _dump(apply_patch(before, decision.patch))

    async def _renderer(self, request: CommitRequest, draft: Draft) -> Callable[[int, datetime, str], str]:
        snapshot = request.decision.snapshot
        message = await self._agent_message(request, draft, snapshot)
        return lambda seq, at, words: render(
            draft, snapshot, TaskText.model_validate_json(words) if draft.tells_task else TaskText(), message, seq, at
        )

    async def _agent_message(self, request: CommitRequest, draft: Draft, snapshot: TaskSnapshot) -> Json | None:
        if draft.words is not None:
            return own_message(snapshot, f"{request.task_id}.{request.cause}", draft)
        if draft.turn is None or draft.step is None or draft.kind not in ("reply", "step", "artifact"):
            return None
        record = await self.store.step(request.task_id, draft.turn, draft.step)
        if record is None:
            raise ApplicationError(f"no record of turn {draft.turn}, step {draft.step}", non_retryable=True)
        step = StepRecord.model_validate_json(record)
        return agent_message(snapshot, step.message_id, step.text) if step.text.strip() else None


def _first_words(decision: Decision) -> str:
    """The words that name a task; a command names none."""
    received = decision.drafts[0].received if decision.drafts else None
    if received is None or decision.drafts[0].received_as == "command":
        return ""
    return read_message(json.loads(received)).text


def _dump(text: TaskText) -> str:
    return text.model_dump_json(exclude_none=True)


def _moves(decision: Decision) -> bool:
    """Whether a commit may have changed the task's state: queued messages and commands do not."""
    return any(draft.kind != "input" or draft.received_as == "turn" for draft in decision.drafts)
