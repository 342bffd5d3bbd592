"""Observers are told of everything that was committed, and stand in nobody's way."""

import asyncio
import json
import sqlite3
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from tiny_harness.background import in_background
from tiny_harness.contracts import TaskSnapshot
from tiny_harness.errors import HookFailed, Unavailable
from tiny_harness.events import EventKind
from tiny_harness.ext import status
from tiny_harness.ext.task import Participant
from tiny_harness.hooks import Executor, Hooks
from tiny_harness.hooks.contexts import ObservedContext
from tiny_harness.settings import Settings
from tiny_harness.states import TaskState
from tiny_harness.store import Commit, NewEvent, Store, open_store
from tiny_harness_engine import observers
from tiny_harness_engine.observers import ObserverDispatcher

pytestmark = pytest.mark.timeout(120)

PATIENCE_S = 30


class Watcher:
    """An observer: remembers what it is told; fails, hangs and hides secrets when the test wants it."""

    def __init__(self) -> None:
        self.contexts: list[ObservedContext] = []
        self.calls: Counter[tuple[str, int]] = Counter()
        self.fails_at: dict[tuple[str, int], int] = {}
        """By event: how often it fails before it takes it."""
        self.gates: dict[str, asyncio.Event] = {}
        """By task: what a call waits for."""
        self._news = asyncio.Condition()

    async def __call__(self, context: ObservedContext) -> None:
        event = (context.task.task_id, context.seq)
        async with self._news:
            self.calls[event] += 1
            self._news.notify_all()
        if gate := self.gates.get(event[0]):
            await gate.wait()
        if self.calls[event] <= self.fails_at.get(event, 0):
            raise RuntimeError("planted")
        async with self._news:
            self.contexts.append(context)
            self._news.notify_all()

    @property
    def seen(self) -> list[tuple[str, int]]:
        return [(context.task.task_id, context.seq) for context in self.contexts]

    def seen_of(self, task_id: str) -> list[int]:
        return [seq for name, seq in self.seen if name == task_id]

    async def until_seen(self, *events: tuple[str, int]) -> None:
        async with asyncio.timeout(PATIENCE_S), self._news:
            await self._news.wait_for(lambda: set(events) <= set(self.seen))

    async def until_called(self, event: tuple[str, int], times: int = 1) -> None:
        async with asyncio.timeout(PATIENCE_S), self._news:
            await self._news.wait_for(lambda: self.calls[event] >= times)

    def on(self, operation: str, name: str = "watch/all", **options: Any) -> Executor:
        return Executor(name=name, operation=operation, phase="post", call=self, **options)


@pytest.fixture
async def store(settings: Settings) -> AsyncGenerator[Store]:
    async with open_store(settings) as opened:
        yield opened


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observers, "FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(observers, "LONGEST_PAUSE_S", 0.02)


@pytest.fixture
def never_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves the observers with what they find at their start, and with what they are told."""
    monkeypatch.setattr(observers, "POLL_S", 3600)


async def commit(store: Store, task_id: str, kind: EventKind = "reply", state: TaskState = TaskState.WORKING) -> None:
    """Write a task's next event."""
    record = await store.task(task_id)
    head = record.snapshot.head if record else 0

    def render(seq: int, _at: datetime, _words: str) -> str:
        body = {"status": {"state": state.value}, "metadata": {status.KEY: {"sub_state": f"at-{seq}"}}}
        return json.dumps({"task" if kind == "task" else "statusUpdate": body})

    people = (Participant(id="ann", role="reporter"),)
    after = TaskSnapshot(task_id=task_id, context_id="c", state=state, participants=people)
    text = '{"name":"n","goal":"token=hunter2"}'
    done = await store.commit(Commit(task_id, f"m:{head + 1}", head, [NewEvent(kind, render)], after, text))
    assert done.events


@asynccontextmanager
async def dispatching(store: Store, *executors: Executor, **options: Any) -> AsyncGenerator[ObserverDispatcher]:
    """Run a dispatcher that the store knows the observers of."""
    dispatcher = ObserverDispatcher(store, Hooks(executors, **options))
    known = [f"{executor.name} {executor.point}" for executor in executors]
    await store.register_observers(known)
    async with in_background(dispatcher.run()):
        yield dispatcher


async def test_events_are_told_in_order_and_each_to_who_observes_its_kind(store: Store, never_polls: None) -> None:
    watchers = {name: Watcher() for name in ("task.started", "message.received", "reply.sent", "state.changed")}
    async with dispatching(store, *(watcher.on(name) for name, watcher in watchers.items())) as dispatcher:
        kinds: list[EventKind] = ["task", "input", "reply", "state", "input", "reply"]
        for kind in kinds:
            await commit(store, "t1", kind)
            dispatcher.notify("t1")
        await watchers["reply.sent"].until_seen(("t1", 3), ("t1", 6))
        await watchers["message.received"].until_seen(("t1", 2), ("t1", 5))
        await watchers["task.started"].until_seen(("t1", 1))
        await watchers["state.changed"].until_seen(("t1", 4))
    assert [watcher.seen_of("t1") for watcher in watchers.values()] == [[1], [2, 5], [3, 6], [4]]


async def test_an_observer_is_shown_the_task_as_of_the_event_and_no_secret(store: Store, never_polls: None) -> None:
    watcher = Watcher()

    def redact(document: Any) -> Any:
        return json.loads(json.dumps(document).replace("hunter2", "***"))

    async with dispatching(store, watcher.on("reply.sent"), redact=redact) as dispatcher:
        await commit(store, "t1", "reply", TaskState.WORKING)
        await commit(store, "t1", "reply", TaskState.COMPLETED)
        dispatcher.notify("t1")
        await watcher.until_seen(("t1", 2))
    first = watcher.contexts[0]
    assert (first.task.state, first.task.sub_state, first.task.name) == ("TASK_STATE_WORKING", "at-1", "n")
    assert first.task.goal == "token=***"
    assert [person.id for person in first.participants] == ["ann"]
    assert first.event["statusUpdate"]["status"] == {"state": "TASK_STATE_WORKING"}
    assert (first.phase, first.attempt, first.correlation_id) == ("post", 1, "t1.1")
    assert first.delivery_id


async def test_a_new_observer_starts_with_what_comes_and_a_known_one_goes_on(
    store: Store, settings: Settings, never_polls: None
) -> None:
    old, new = Watcher(), Watcher()
    async with dispatching(store, old.on("reply.sent", "old")):
        pass
    await commit(store, "t1")
    age(settings.store.sqlite_path)
    async with dispatching(store, old.on("reply.sent", "old"), new.on("reply.sent", "new")) as dispatcher:
        await commit(store, "t1")
        dispatcher.notify("t1")
        await old.until_seen(("t1", 1), ("t1", 2))
        await new.until_seen(("t1", 2))
    assert (old.seen_of("t1"), new.seen_of("t1")) == ([1, 2], [2])


async def test_a_call_that_a_crash_cut_is_made_again_and_no_event_is_lost(store: Store, never_polls: None) -> None:
    watcher = Watcher()
    watcher.gates["t1"] = asyncio.Event()
    async with dispatching(store, watcher.on("reply.sent")) as dispatcher:
        for _ in range(3):
            await commit(store, "t1")
        dispatcher.notify("t1")
        await watcher.until_called(("t1", 1))
    watcher.gates.clear()
    async with dispatching(store, watcher.on("reply.sent")):
        await watcher.until_seen(("t1", 3))
    assert watcher.seen_of("t1") == [1, 2, 3]
    async with dispatching(store, watcher.on("reply.sent")) as dispatcher:
        await commit(store, "t1")
        dispatcher.notify("t1")
        await watcher.until_seen(("t1", 4))
    assert sorted(set(watcher.seen_of("t1"))) == [1, 2, 3, 4]
    assert (watcher.calls["t1", 1], watcher.calls["t1", 2]) == (2, 1)


async def test_a_failed_call_is_made_again_before_any_later_event_of_the_task(store: Store, never_polls: None) -> None:
    watcher = Watcher()
    watcher.fails_at["t1", 2] = 3
    async with dispatching(store, watcher.on("reply.sent")) as dispatcher:
        for _ in range(3):
            await commit(store, "t1")
            dispatcher.notify("t1")
        await watcher.until_seen(("t1", 3))
    assert watcher.seen_of("t1") == [1, 2, 3]
    assert watcher.calls["t1", 2] == 4
    assert [context.attempt for context in watcher.contexts] == [1, 4, 1]
    assert dispatcher.skipped == {}


@pytest.mark.parametrize("on_failure", ["closed", "open"])
async def test_an_event_that_always_fails_is_given_up_and_said_so(
    store: Store, never_polls: None, on_failure: str, caplog: pytest.LogCaptureFixture
) -> None:
    watcher, told = Watcher(), Counter[bool]()

    def watch(_executor: Executor, failure: HookFailed | None) -> None:
        told[failure is None] += 1

    watcher.fails_at["t1", 1] = 10_000
    executor = watcher.on("reply.sent", on_failure=on_failure)
    async with dispatching(store, executor, watch=watch) as dispatcher:
        await commit(store, "t1")
        await commit(store, "t1")
        dispatcher.notify("t1")
        await watcher.until_seen(("t1", 2))
    assert watcher.calls["t1", 1] == observers.ATTEMPTS
    assert dispatcher.skipped == {"watch/all reply.sent.post": 1}
    assert told[False] == observers.ATTEMPTS
    assert any("given up" in record.message for record in caplog.records)


async def test_a_stuck_task_or_observer_holds_up_no_other(store: Store, never_polls: None) -> None:
    stuck, broken, well = Watcher(), Watcher(), Watcher()
    stuck.gates["t0"] = asyncio.Event()
    broken.fails_at = {(f"t{index}", 1): 10_000 for index in range(20)}
    executors = [
        stuck.on("reply.sent", "stuck", deadline_s=9.0),
        broken.on("reply.sent", "broken"),
        well.on("reply.sent", "well"),
    ]
    async with dispatching(store, *executors) as dispatcher:
        for index in range(20):
            await commit(store, f"t{index}")
            dispatcher.notify(f"t{index}")
        await well.until_seen(*((f"t{index}", 1) for index in range(20)))
        await stuck.until_seen(*((f"t{index}", 1) for index in range(1, 20)))
        assert stuck.seen_of("t0") == []


async def test_what_another_process_committed_is_found(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observers, "POLL_S", 0.02)
    monkeypatch.setattr(observers, "PAGE", 2)
    watcher = Watcher()
    async with dispatching(store, watcher.on("reply.sent")):
        for index in range(5):
            await commit(store, f"t{index}")
        await watcher.until_seen(*((f"t{index}", 1) for index in range(5)))
        for _ in range(5):
            await commit(store, "t3")
        await watcher.until_seen(("t3", 6))
    assert watcher.seen_of("t3") == [1, 2, 3, 4, 5, 6]
    assert max(watcher.calls.values()) == 1


async def test_observers_outlive_a_store_that_is_away(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observers, "POLL_S", 0.02)
    watcher, away = Watcher(), asyncio.Event()
    real_events, real_tasks, real_register = store.unobserved_events, store.changed_tasks, store.register_observers
    failed = Counter[str]()

    def flaky(name: str, real: Any) -> Any:
        async def method(*arguments: Any) -> Any:
            if not away.is_set() and failed[name] < 2:
                failed[name] += 1
                raise Unavailable("planted")
            return await real(*arguments)

        return method

    await store.register_observers(["watch/all reply.sent.post"])
    monkeypatch.setattr(store, "unobserved_events", flaky("events", real_events))
    monkeypatch.setattr(store, "changed_tasks", flaky("tasks", real_tasks))
    monkeypatch.setattr(store, "register_observers", flaky("register", real_register))
    await commit(store, "t1")
    dispatcher = ObserverDispatcher(store, Hooks([watcher.on("reply.sent")]))
    async with in_background(dispatcher.run()):
        await watcher.until_seen(("t1", 1))
    assert failed == {"events": 2, "tasks": 2, "register": 2}
    assert watcher.seen_of("t1") == [1]


async def test_a_purged_task_is_forgotten(store: Store, settings: Settings, never_polls: None) -> None:
    watcher = Watcher()
    async with dispatching(store, watcher.on("reply.sent")) as dispatcher:
        await commit(store, "t1", "reply", TaskState.COMPLETED)
        watcher.gates["t1"] = asyncio.Event()
        dispatcher.notify("t1")
        await watcher.until_called(("t1", 1))
        assert await store.purge(timedelta()) == 1
        watcher.gates["t1"].set()
        await commit(store, "t2")
        await commit(store, "t2")
        dispatcher.notify("t1")
        dispatcher.notify("t2")
        await watcher.until_seen(("t1", 1), ("t2", 2))
    assert [task_id for _, task_id, _ in rows(settings.store.sqlite_path, "observed")] == ["t2"]


async def test_without_observers_nothing_is_asked_of_the_store() -> None:
    acting = Executor(name="a", operation="request.received", phase="pre", call=Watcher())
    dispatcher = ObserverDispatcher(cast(Store, None), Hooks([acting]))
    dispatcher.notify("t1")
    async with asyncio.timeout(PATIENCE_S):
        await dispatcher.run()


def age(path: Path) -> None:
    """Move all events and observers a second into the past: the store counts time in milliseconds."""
    with sqlite3.connect(path, timeout=10) as connection:
        connection.execute("update events set at = at - 1000")
        connection.execute("update observers set since = since - 1000")
    connection.close()


def rows(path: Path, table: str) -> list[tuple[Any, ...]]:
    with sqlite3.connect(path) as connection:
        found = connection.execute(f"select * from {table}").fetchall()
    connection.close()
    return found
