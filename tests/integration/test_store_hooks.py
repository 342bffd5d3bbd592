"""What hooks, engines and observers leave in the store."""

from collections.abc import AsyncGenerator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.stores import execute
from tiny_harness.contracts import Child, TaskSnapshot
from tiny_harness.ext.task import Participant
from tiny_harness.hooks import Verdict
from tiny_harness.settings import Settings
from tiny_harness.states import TaskState
from tiny_harness.store import Commit, NewEvent, Store, open_store

START = (datetime.fromtimestamp(0, UTC), "")
REFUSED = Verdict("policies/no-secrets", "command.invoked.pre", "refused", "no", 12)
SLOW = Verdict("policies/slow", "command.invoked.post", "slow", "", 2_000)


@pytest.fixture
async def store(either: Settings) -> AsyncGenerator[Store]:
    async with open_store(either) as opened:
        yield opened


def snapshot(task_id: str = "t1", state: TaskState = TaskState.WORKING, **more: Any) -> TaskSnapshot:
    people = (Participant(id="ann", role="reporter"),)
    return TaskSnapshot(task_id=task_id, context_id="c", state=state, participants=people, **more)


def commit(cause: str, head: int, after: TaskSnapshot | None = None, *verdicts: Verdict, events: int = 1) -> Commit:
    after = after or snapshot()
    news = [NewEvent("input", lambda seq, *_: f'{{"seq":{seq}}}') for _ in range(events)]
    return Commit(after.task_id, cause, head, news, after, "", verdicts)


async def test_verdicts_are_kept_with_the_commit_that_writes(store: Store) -> None:
    await store.commit(commit("m:1", 0, None, REFUSED, SLOW))
    await store.commit(commit("m:1", 1, None, REFUSED))
    await store.commit(commit("m:2", 0, None, REFUSED))
    await store.commit(commit("m:3", 1, None, SLOW))
    kept = await store.verdicts("t1")
    assert [(one.cause, one.verdict) for one in kept] == [("m:1", REFUSED), ("m:1", SLOW), ("m:3", SLOW)]
    record = await store.task("t1")
    assert record is not None
    assert kept[-1].at == record.updated_at
    assert await store.verdicts("t2") == []


async def test_purge_deletes_what_hooks_left(store: Store, either: Settings) -> None:
    await store.register_observers(["o"])
    await store.commit(commit("m:1", 0, snapshot("t1", TaskState.COMPLETED), REFUSED))
    await store.advance_observer("o", "t1", 1)
    assert await store.purge(timedelta()) == 1
    assert await store.verdicts("t1") == []
    assert await execute(either, "select * from observed") == []
    await store.advance_observer("o", "t1", 2)
    assert await execute(either, "select * from observed") == []


async def test_the_catalogue_that_was_saved_last_is_the_current_one(store: Store) -> None:
    assert await store.current_catalogue() is None
    for digest in ("a", "b", "c", "c", "a", "b"):
        await store.save_catalogue(digest, f'{{"is":"{digest}"}}')
        assert await store.current_catalogue() == (digest, f'{{"is":"{digest}"}}')


async def test_an_engines_last_report_counts_and_silent_ones_are_forgotten(store: Store, either: Settings) -> None:
    await store.report_engine("old", "d", "{}")
    await store.report_engine("gone", "d", "{}")
    await execute(either, "update engines set at = at - 7200000 where engine_id = 'old'")
    await execute(either, "update engines set at = at - 90000000 where engine_id = 'gone'")
    await store.report_engine("new", "d", '{"up":false}')
    await store.report_engine("new", "e", '{"up":true}')
    lately = await store.engines(timedelta(hours=1))
    assert [(one.engine_id, one.digest, one.health) for one in lately] == [("new", "e", '{"up":true}')]
    assert timedelta() <= lately[0].age < timedelta(minutes=5)
    every = await store.engines(timedelta(days=7))
    assert [one.engine_id for one in every] == ["new", "old"]
    assert timedelta(hours=2) <= every[1].age < timedelta(hours=3)


async def test_snapshots_of_several_tasks_are_read_at_once(store: Store) -> None:
    family = (Child(task_id="b", state=TaskState.WORKING),)
    await store.commit(commit("m:1", 0, snapshot("a", children=family)))
    await store.commit(commit("m:1", 0, snapshot("b", TaskState.COMPLETED, parent="a")))
    found = await store.snapshots(["a", "b", "nope"])
    assert {task_id: one.state for task_id, one in found.items()} == {
        "a": TaskState.WORKING,
        "b": TaskState.COMPLETED,
    }
    assert (found["a"].children, found["b"].parent) == (family, "a")
    assert await store.snapshots([]) == {}


async def test_an_observer_reads_from_its_registration_on_and_never_goes_back(store: Store, either: Settings) -> None:
    await store.commit(commit("m:1", 0))
    await execute(either, "update events set at = at - 1000")
    assert await store.unobserved_events("o", "t1", 10) == []
    await store.register_observers(["o", "p"])
    await store.commit(commit("m:2", 1, None, events=2))
    assert [event.seq for event in await store.unobserved_events("o", "t1", 10)] == [2, 3]
    assert [event.seq for event in await store.unobserved_events("o", "t1", 1)] == [2]
    await store.advance_observer("o", "t1", 2)
    await store.advance_observer("o", "t1", 1)
    await store.register_observers(["o"])
    assert [event.seq for event in await store.unobserved_events("o", "t1", 10)] == [3]
    assert [event.seq for event in await store.unobserved_events("p", "t1", 10)] == [2, 3]


async def test_changed_tasks_are_paged_and_tell_who_is_behind(store: Store) -> None:
    assert await store.changed_tasks("o", START, 10) == []
    await store.register_observers(["o"])
    for name in ("a", "b", "c"):
        await store.commit(commit("m:1", 0, snapshot(name)))
    await store.advance_observer("o", "b", 1)
    first = await store.changed_tasks("o", START, 2)
    rest = await store.changed_tasks("o", (first[-1].updated_at, first[-1].task_id), 2)
    every = [*first, *rest]
    assert sorted(task.task_id for task in every) == ["a", "b", "c"]
    assert {task.task_id: task.is_behind for task in every} == {"a": True, "b": False, "c": True}
    assert [task.updated_at for task in every] == sorted(task.updated_at for task in every)
    last = await store.commit(commit("m:2", 1, snapshot("b")))
    assert last.events
    assert {task.task_id: task.is_behind for task in await store.changed_tasks("o", START, 9)}["b"]
