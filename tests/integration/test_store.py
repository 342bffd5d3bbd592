"""The store, on SQLite and on PostgreSQL."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta

import pytest

from tiny_harness.contracts import TaskSnapshot
from tiny_harness.ext.task import Participant
from tiny_harness.settings import Settings
from tiny_harness.states import OPEN_STATES, TaskState
from tiny_harness.store import Commit, NewEvent, Reading, Store, TaskPage, TaskQuery, open_store


@pytest.fixture
async def store(either: Settings) -> AsyncGenerator[Store]:
    async with open_store(either) as opened:
        yield opened


def snapshot(task_id: str = "t1", state: TaskState = TaskState.WORKING, *people: str) -> TaskSnapshot:
    participants = tuple(Participant(id=who, role="reporter") for who in people or ("ann",))
    return TaskSnapshot(task_id=task_id, context_id="c", state=state, participants=participants)


def render(seq: int, at: datetime, _words: str) -> str:
    return f'{{"seq":{seq},"at":"{at.isoformat()}"}}'


def commit(cause: str, head: int, after: TaskSnapshot | None = None, *, events: int = 1, text: str = "") -> Commit:
    after = after or snapshot()
    news = [NewEvent("input", render, digest=f"d-{cause}" if part == 0 else None) for part in range(events)]
    return Commit(after.task_id, cause, head, news, after, text)


async def seqs(store: Store, task_id: str = "t1") -> list[tuple[int, str]]:
    return [(event.seq, event.cause) for event in await store.events(task_id, 0, 100)]


async def test_a_first_commit_makes_the_task_and_numbers_its_events(store: Store) -> None:
    done = await store.commit(commit("m:1", 0, events=2, text='{"name":"n"}'))
    assert [event.seq for event in done.events] == [1, 2]
    assert done.snapshot.head == 2
    record = await store.task("t1")
    assert record is not None
    assert (record.snapshot, record.text) == (done.snapshot, '{"name":"n"}')
    assert record.created_at == record.updated_at


async def test_a_known_cause_writes_nothing_and_tells_where_it_is(store: Store) -> None:
    await store.commit(commit("m:1", 0))
    await store.commit(commit("m:2", 1))
    again = await store.commit(commit("m:1", 2))
    assert (again.events, again.written and (again.written.seq, again.written.digest)) == ((), (1, "d-m:1"))
    assert again.snapshot.head == 2
    assert await seqs(store) == [(1, "m:1"), (2, "m:2")]


async def test_a_writer_that_is_behind_adopts_and_commits_again(store: Store) -> None:
    await store.commit(commit("m:1", 0))
    await store.commit(commit("m:2", 1, snapshot("t1", TaskState.INPUT_REQUIRED)))
    behind = await store.commit(commit("m:3", 1))
    assert behind.written is None
    assert (behind.snapshot.state, behind.snapshot.head) == (TaskState.INPUT_REQUIRED, 2)
    assert (await store.commit(commit("m:3", behind.snapshot.head))).written


async def test_an_ended_task_takes_no_row(store: Store) -> None:
    await store.commit(commit("m:1", 0, snapshot("t1", TaskState.COMPLETED)))
    late = await store.commit(commit("m:2", 1))
    assert (late.written, late.events, late.snapshot.state) == (None, (), TaskState.COMPLETED)
    assert (await store.commit(commit("m:1", 1))).written


async def test_numbers_that_a_failover_took_back_are_never_used_again(store: Store) -> None:
    await store.commit(commit("m:1", 0))
    done = await store.commit(commit("m:5", 4))
    assert [(event.seq, event.kind) for event in done.events] == [(5, "lost"), (6, "input")]
    assert done.snapshot.head == 6
    assert done.written is not None
    assert done.written.seq == 6


async def test_one_cause_committed_by_many_at_once_is_written_once(store: Store) -> None:
    results = await asyncio.gather(*(store.commit(commit("m:1", 0)) for _ in range(20)))
    assert sum(bool(result.events) for result in results) == 1
    assert await seqs(store) == [(1, "m:1")]


async def test_a_failed_commit_leaves_nothing(store: Store) -> None:
    def explode(*_: object) -> str:
        raise RuntimeError("planted")

    broken = Commit("t1", "m:1", 0, [NewEvent("input", render), NewEvent("input", explode)], snapshot(), "")
    with pytest.raises(RuntimeError):
        await store.commit(broken)
    assert await store.task("t1") is None
    assert (await store.commit(commit("m:1", 0))).written


async def test_the_first_record_of_a_step_counts(store: Store) -> None:
    await store.commit(commit("m:1", 0))
    assert await store.step("t1", 1, 1) is None
    assert await store.save_step("t1", 1, 1, "first") == "first"
    assert await store.save_step("t1", 1, 1, "second") == "first"
    assert await store.step("t1", 1, 1) == "first"


async def test_the_first_task_under_a_key_counts(store: Store) -> None:
    assert await store.reserve_task("ann", "k", "t1") == "t1"
    assert await store.reserve_task("ann", "k", "t2") == "t1"
    assert await store.reserve_task("bob", "k", "t3") == "t3"


async def page_of(store: Store, query: TaskQuery) -> TaskPage:
    return await store.read(lambda reading: reading.list_tasks(query))


async def test_a_participant_lists_their_own_tasks_newest_change_first(store: Store) -> None:
    for name in ("a", "b", "c"):
        await store.commit(commit(f"m:{name}", 0, snapshot(name)))
    await store.commit(commit("m:x", 0, snapshot("x", TaskState.WORKING, "bob")))
    await store.commit(commit("m:a2", 1, snapshot("a")))
    page = await page_of(store, TaskQuery("ann", limit=2))
    last = page.tasks[-1]
    rest = await page_of(store, TaskQuery("ann", limit=2, after=(last.updated_at, last.snapshot.task_id)))
    listed = [record.snapshot.task_id for record in [*page.tasks, *rest.tasks]]
    assert sorted(listed) == ["a", "b", "c"]
    assert (page.total, listed[0]) == (3, "a") or listed[0] == "c"


async def test_a_list_is_filtered(store: Store) -> None:
    await store.commit(commit("m:a", 0, snapshot("a")))
    await store.commit(commit("m:b", 0, snapshot("b", TaskState.COMPLETED)))

    async def ids(query: TaskQuery) -> Sequence[str]:
        return [record.snapshot.task_id for record in (await page_of(store, query)).tasks]

    assert await ids(TaskQuery("ann", state=TaskState.COMPLETED)) == ["b"]
    assert await ids(TaskQuery("ann", context_id="elsewhere")) == []
    record = await store.task("b")
    assert record is not None
    assert await ids(TaskQuery("ann", updated_after=record.updated_at + timedelta(seconds=1))) == []


async def test_a_new_participant_finds_the_task_in_their_list(store: Store) -> None:
    await store.commit(commit("m:1", 0))
    await store.commit(commit("m:2", 1, snapshot("t1", TaskState.WORKING, "ann", "bob")))
    assert (await page_of(store, TaskQuery("bob"))).total == 1
    assert await store.on_any_task("bob", "c")
    assert not await store.on_any_task("eve", "c")


async def test_words_are_the_last_events_in_order(store: Store) -> None:
    for index in range(5):
        await store.commit(commit(f"m:{index}", index))
    assert [event.seq for event in await store.words("t1", 2)] == [4, 5]
    assert [event.seq for event in await store.words("t1", 2, before=4)] == [2, 3]


async def test_reads_that_are_asked_for_together_see_one_moment(store: Store, either: Settings) -> None:
    await store.commit(commit("m:1", 0))

    async def come_between() -> None:
        async with open_store(either) as other:
            await other.commit(commit("m:2", 1))

    def look(reading: Reading) -> tuple[int, list[int], object]:
        record = reading.task("t1")
        assert record is not None
        elsewhere.submit(asyncio.run, come_between()).result(30)
        return record.snapshot.head, [event.seq for event in reading.words("t1", 10)], reading.written("t1", "m:2")

    with ThreadPoolExecutor(1) as elsewhere:
        assert await store.read(look) == (1, [1], None)
    assert await store.heads(["t1"]) == {"t1": 2}


async def test_what_a_look_raises_comes_out(store: Store) -> None:
    def look(_reading: Reading) -> None:
        raise LookupError("nothing here")

    with pytest.raises(LookupError, match="nothing here"):
        await store.read(look)


async def test_an_event_is_rendered_with_the_tasks_words_as_they_are_then(store: Store) -> None:
    def words(_seq: int, _at: datetime, text: str) -> str:
        return text

    for number, text in enumerate(['{"name":"a"}', "", '{"name":"b"}', ""]):
        await store.commit(Commit("t1", f"m:{number}", number, [NewEvent("state", words)], snapshot(), text))
    payloads = [event.payload for event in await store.events("t1", 0, 10)]
    assert payloads == ['{"name":"a"}', '{"name":"a"}', '{"name":"b"}', '{"name":"b"}']


async def test_open_tasks_are_paged_by_id(store: Store) -> None:
    for name in ("a", "b", "c"):
        await store.commit(commit("m:1", 0, snapshot(name)))
    await store.commit(commit("m:1", 0, snapshot("z", TaskState.FAILED)))
    assert await store.open_tasks(sorted(OPEN_STATES), "", 2) == ["a", "b"]
    assert await store.open_tasks(sorted(OPEN_STATES), "b", 2) == ["c"]
    assert await store.heads(["a", "z", "nope"]) == {"a": 1, "z": 1}


async def test_a_cancel_is_pending_until_its_task_has_ended(store: Store) -> None:
    await store.commit(commit("m:1", 0))
    await store.request_cancel("t1", "ann")
    await store.request_cancel("t1", "bob")
    assert [(c.task_id, c.requested_by) for c in await store.pending_cancels(timedelta())] == [("t1", "ann")]
    assert await store.pending_cancels(timedelta(seconds=30)) == []
    await store.commit(commit("cancel", 1, snapshot("t1", TaskState.CANCELED)))
    assert await store.pending_cancels(timedelta()) == []


async def test_purge_deletes_ended_tasks_only(store: Store) -> None:
    await store.commit(commit("m:1", 0))
    await store.commit(commit("m:1", 0, snapshot("done", TaskState.COMPLETED)))
    await store.save_step("done", 1, 1, "x")
    assert await store.purge(timedelta(days=1)) == 0
    assert await store.purge(timedelta(), dry_run=True) == 1
    assert await store.purge(timedelta()) == 1
    assert await store.task("done") is None
    assert await store.events("done", 0, 10) == []
    assert await store.task("t1") is not None
