"""Tells observers what was committed: from the event log, in order per task, never in anyone's way (DESIGN: hooks).

An observer is an executor on an observed operation. Each has a cursor per task in the store, moved on after each call,
so that a crash repeats one call and loses none; two engines on one store may both make it. A call that fails is made
again with growing pauses while all other tasks and observers go on. An event that fails `ATTEMPTS` times, counted since
the start of this engine, is given up: it is logged and counted in `skipped`, and the task's next event has its turn.
"""

import asyncio
import json
import logging
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from tiny_harness.errors import Unavailable
from tiny_harness.events import Event, EventKind
from tiny_harness.ext import status
from tiny_harness.hooks import OPERATIONS, Executor, Hooks
from tiny_harness.hooks.contexts import ObservedContext, TaskRef
from tiny_harness.store import Store, TaskRecord
from tiny_harness_engine.subject import subject_of

log = logging.getLogger(__name__)

OPERATION_OF: Final[Mapping[EventKind, str]] = {
    "task": "task.started",
    "input": "message.received",
    "step": "step.finished",
    "reply": "reply.sent",
    "state": "state.changed",
}
"""What an event of the log is observed as."""

POLL_S: Final = 5.0
"""How often the store is asked for what other processes committed."""
POLL_OVERLAP: Final = timedelta(seconds=5)
"""How far a poll looks back: a commit may become visible after a later one."""
PAGE: Final = 200
CALLS_AT_ONCE: Final = 4
"""Tasks of which an observer is told at the same time."""
ATTEMPTS: Final = 20
"""Calls for one event before it is given up: about a quarter of an hour."""
FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 60.0


class ObserverDispatcher:
    """All observers of an engine. Costs nothing when there are none."""

    def __init__(self, store: Store, hooks: Hooks) -> None:
        self._store = store
        self._observers = [
            _Observer(store, hooks.only(executor), executor)
            for executor in hooks.executors
            if OPERATIONS[executor.operation].is_observed
        ]

    @property
    def skipped(self) -> dict[str, int]:
        """How many events were given up, by executor and point; for the health page."""
        return {observer.id: observer.skipped for observer in self._observers if observer.skipped}

    def notify(self, task_id: str) -> None:
        """Say that a task has new events."""
        for observer in self._observers:
            observer.wake(task_id)

    async def run(self) -> None:
        """Tell observers until cancelled. A call that is cut then is made again by the next start."""
        if not self._observers:
            return
        await self._register()
        async with asyncio.TaskGroup() as group:
            for observer in self._observers:
                group.create_task(observer.poll())
                for _ in range(CALLS_AT_ONCE):
                    group.create_task(observer.work())

    async def _register(self) -> None:
        while True:
            try:
                return await self._store.register_observers([observer.id for observer in self._observers])
            except Unavailable as error:
                log.warning("observers cannot start yet: %s", error.reason)
                await asyncio.sleep(FIRST_PAUSE_S)


class _Observer:
    """One executor, and the tasks that it may have to be told of."""

    def __init__(self, store: Store, hooks: Hooks, executor: Executor) -> None:
        self.id = f"{executor.name} {executor.point}"
        self.skipped = 0
        self._store = store
        self._hooks = hooks
        self._operation = executor.operation
        self._queue: asyncio.Queue[str] = asyncio.Queue()
        self._taken: set[str] = set()
        """Tasks that are in the queue, worked on, or in a pause: each once, which keeps the order."""
        self._again: set[str] = set()
        """Those that may have more than whoever works on them has seen."""
        self._failures: Counter[str] = Counter()
        """Failed calls for the event that a task stands at."""

    def wake(self, task_id: str) -> None:
        """Look at a task."""
        if task_id in self._taken:
            self._again.add(task_id)
        else:
            self._taken.add(task_id)
            self._queue.put_nowait(task_id)

    async def poll(self) -> None:
        """Find tasks that others changed, and at first those that a crash left behind."""
        newest = datetime.fromtimestamp(0, UTC)
        while True:
            try:
                newest = await self._look_behind(newest)
            except Exception as error:  # a bug costs one look: without, what others commit is never told
                log.log(logging.WARNING, "observer %s could not look for news", self.id, exc_info=_unforeseen(error))
            await asyncio.sleep(POLL_S)

    async def _look_behind(self, newest: datetime) -> datetime:
        """Wake the tasks with news that changed since a time; returns the time of the last change."""
        place = (newest - POLL_OVERLAP, "")
        while True:
            page = await self._store.changed_tasks(self.id, place, PAGE)
            for task in page:
                if task.is_behind:
                    self.wake(task.task_id)
            if page:
                newest, place = page[-1].updated_at, (page[-1].updated_at, page[-1].task_id)
            if len(page) < PAGE:
                return newest

    async def work(self) -> None:
        """Take task after task from the queue; several of these run at once."""
        while True:
            task_id = await self._queue.get()
            self._again.discard(task_id)
            pause_s = await self._follow(task_id)
            if pause_s:
                asyncio.get_running_loop().call_later(pause_s, self._queue.put_nowait, task_id)
            elif task_id in self._again:
                self._queue.put_nowait(task_id)
            else:
                self._taken.discard(task_id)

    async def _follow(self, task_id: str) -> float:
        """Tell all that a task has; returns the seconds until it is tried again, 0 if that is not needed."""
        try:
            while events := await self._store.unobserved_events(self.id, task_id, PAGE):
                record = await self._store.task(task_id)
                if record is None:
                    break
                for event in events:
                    if not await self._pass(record, event):
                        return self._pause_s(task_id)
                await self._store.advance_observer(self.id, task_id, events[-1].seq)
        except Exception as error:  # the store is away, or a bug: nothing of one task may end the work on others
            log.log(
                logging.WARNING, "observer %s cannot go on at task %s", self.id, task_id, exc_info=_unforeseen(error)
            )
            return LONGEST_PAUSE_S if _unforeseen(error) else FIRST_PAUSE_S
        self._failures.pop(task_id, None)
        return 0.0

    async def _pass(self, record: TaskRecord, event: Event) -> bool:
        """Tell one event, if it is for this observer; false if it has to be tried again."""
        if OPERATION_OF.get(event.kind) != self._operation:
            return True
        if not await self._call(record, event):
            self._failures[event.task_id] += 1
            if self._failures[event.task_id] < ATTEMPTS:
                return False
            log.error("observer %s: event %s of task %s is given up", self.id, event.seq, event.task_id)
            self.skipped += 1
        self._failures.pop(event.task_id, None)
        await self._store.advance_observer(self.id, event.task_id, event.seq)
        return True

    async def _call(self, record: TaskRecord, event: Event) -> bool:
        payload = json.loads(event.payload)
        context = ObservedContext(
            operation=self._operation,
            phase="post",
            task=_task_at(record, payload),
            participants=record.snapshot.participants,
            correlation_id=f"{event.task_id}.{event.seq}",
            attempt=self._failures[event.task_id] + 1,
            seq=event.seq,
            event=payload,
        )
        outcome = await self._hooks.run(context)
        return not any(verdict.kind == "failed" for verdict in outcome.verdicts)

    def _pause_s(self, task_id: str) -> float:
        return min(FIRST_PAUSE_S * 2 ** (self._failures[task_id] - 1), LONGEST_PAUSE_S)


def _task_at(record: TaskRecord, payload: dict[str, Any]) -> TaskRef:
    """Describe a task: its state as of an event, everything else as it is now."""
    body = payload.get("task") or payload.get("statusUpdate")
    if body is None:  # an artifact says no state
        return subject_of(record).task_ref()
    sub_state = body.get("metadata", {}).get(status.KEY, {}).get("sub_state")
    then = {"state": body["status"]["state"], "sub_state": sub_state}
    return subject_of(record).task_ref().model_copy(update=then)


def _unforeseen(error: Exception) -> Exception | None:
    """Give an error whose traceback belongs in the log."""
    return None if isinstance(error, Unavailable) else error
