"""Push configurations in the store: each its maker's own, served from where it stands, gone with the task."""

from collections.abc import AsyncGenerator

import pytest

from tiny_harness.contracts import TaskSnapshot
from tiny_harness.ext.task import Participant
from tiny_harness.push import PushKey
from tiny_harness.settings import Settings
from tiny_harness.states import TaskState
from tiny_harness.store import Commit, NewEvent, Store, open_store

KEY = PushKey(task_id="t", participant_id="ann", config_id="x")
BOBS = KEY.model_copy(update={"participant_id": "bob"})


async def write(store: Store, cause: str, head: int, participants: tuple[str, ...] = ()) -> None:
    people = [Participant(id=name, kind="human", role="reporter") for name in participants]
    snapshot = TaskSnapshot(task_id="t", context_id="c", state=TaskState.WORKING, participants=people)
    event = NewEvent("task" if head == 0 else "state", lambda seq, at, _words: f'{{"seq":{seq},"at":"{at}"}}')
    await store.commit(Commit("t", cause, head, [event], snapshot, "{}"))


@pytest.fixture
async def store(either: Settings) -> AsyncGenerator[Store]:
    async with open_store(either) as store:
        await write(store, "m:1", 0)
        yield store


async def test_one_is_kept_replaced_listed_and_deleted_and_another_ones_stays(store: Store) -> None:
    assert await store.save_push(KEY, "https://a.example/", b"sealed", 1, 2)
    assert await store.save_push(BOBS, "https://b.example/", b"", 1, 2)
    kept = await store.push(KEY)
    assert kept is not None
    assert (kept.url, kept.secret, kept.delivered_seq, kept.status) == ("https://a.example/", b"sealed", 1, "ok")
    await store.note_push(KEY, 1, "disabled", 9)
    assert await store.save_push(KEY, "https://c.example/", b"other", 0, 2)
    [again] = await store.pushes_of("t", "ann")
    assert (again.url, again.delivered_seq, again.status, again.failures) == ("https://c.example/", 1, "ok", 0)
    assert await store.delete_push(KEY)
    assert not await store.delete_push(KEY)
    assert await store.push(KEY) is None
    assert [kept.key for kept in await store.pushes_of("t", "bob")] == [BOBS]


def test_no_ids_that_people_choose_give_two_configurations_one_workflow() -> None:
    ids = [("a", "b:c"), ("a:b", "c"), ("a:b:c", ""), ("", "a:b:c")]
    keys = [PushKey(task_id="t", participant_id=participant, config_id=config) for participant, config in ids]
    assert len({key.workflow_id for key in keys}) == len(keys)


async def test_a_participant_has_so_many_at_most(store: Store) -> None:
    for name, is_kept in (("a", True), ("b", True), ("c", False), ("a", True)):
        key = KEY.model_copy(update={"config_id": name})
        assert await store.save_push(key, "https://a.example/", b"", 1, 2) is is_kept
    assert await store.save_push(BOBS, "https://b.example/", b"", 1, 2), "others have their own"


async def test_those_that_lag_behind_are_found_until_they_are_served_or_disabled(store: Store) -> None:
    await store.save_push(KEY, "https://a.example/", b"", 1, 2)
    await store.save_push(BOBS, "https://b.example/", b"", 1, 2)
    assert await store.pushes_behind(None, 10) == []
    await write(store, "m:2", 1)
    assert sorted(key.participant_id for key in await store.pushes_behind("t", 10)) == ["ann", "bob"]
    assert len(await store.pushes_behind(None, 1)) == 1
    assert await store.pushes_behind("other", 10) == []
    await store.note_push(KEY, 2, "ok", 0)
    await store.note_push(BOBS, 1, "disabled", 60)
    assert await store.pushes_behind(None, 10) == []
    assert await store.count_pushes() == {"ok": 1, "disabled": 1}
