"""Tool calls in the store: claimed once, recorded once, read in order."""

from collections.abc import AsyncGenerator

import pytest

from tiny_harness.contracts import TaskSnapshot
from tiny_harness.settings import Settings
from tiny_harness.states import TaskState
from tiny_harness.store import Commit, NewEvent, Store, open_store


@pytest.fixture
async def store(either: Settings) -> AsyncGenerator[Store]:
    async with open_store(either) as store:
        snapshot = TaskSnapshot(task_id="t", context_id="c", state=TaskState.WORKING)
        event = NewEvent("task", lambda seq, at, _words: f'{{"seq":{seq},"at":"{at}"}}')
        await store.commit(Commit("t", "m:1", 0, [event], snapshot, "{}"))
        yield store


async def test_the_first_claim_and_the_first_record_count(store: Store) -> None:
    assert await store.claim_call("t", 1, 1, 0, "ours") == "ours"
    assert await store.claim_call("t", 1, 1, 0, "theirs") == "ours"
    assert await store.save_call("t", 1, 1, 0, "first") == "first"
    assert await store.save_call("t", 1, 1, 0, "second") == "first"
    [row] = await store.calls("t", [1])
    assert (row.claim, row.record) == ("ours", "first")


async def test_a_call_that_has_its_outcome_cannot_be_claimed(store: Store) -> None:
    await store.save_call("t", 1, 1, 0, "done")
    assert await store.claim_call("t", 1, 1, 0, "late") == ""


async def test_calls_and_steps_of_some_turns_come_in_order(store: Store) -> None:
    for turn, step, call in ((2, 1, 1), (1, 2, 0), (2, 1, 0), (1, 1, 0), (3, 1, 0)):
        await store.save_call("t", turn, step, call, f"{turn}{step}{call}")
        if call == 0:
            await store.save_step("t", turn, step, f"{turn}{step}")
    await store.save_step("t", 0, 7, "about an input")
    assert [row.record for row in await store.calls("t", [1, 2])] == ["110", "120", "210", "211"]
    assert [row.record for row in await store.steps("t", [0, 1, 2])] == ["11", "12", "21"]
