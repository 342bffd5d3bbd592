"""Many engines on one store and one Temporal: one looks after the tasks at a time, whichever it is."""

import asyncio

import pytest

from tests.integration.engine.conftest import PATIENCE_S, Engine
from tiny_harness.store import open_store
from tiny_harness_engine.housekeeping import NAME, Housekeeping


async def test_an_engine_leaves_the_pass_to_the_one_that_is_at_it(stopped: Engine) -> None:
    async with open_store(stopped.settings) as elsewhere, elsewhere.alone(NAME) as is_theirs:
        assert is_theirs
        assert not await Housekeeping.once(stopped.housekeeping())
        assert await stopped.store.last_beat(NAME) is None
    assert await stopped.housekeeping().once()
    assert await stopped.store.last_beat(NAME) is not None


async def test_an_engine_that_starts_makes_a_pass_and_others_soon_after_it_none(
    stopped: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tiny_harness_engine.housekeeping.INTERVAL_S", 0.01)
    passes = [0, 0]
    looked = asyncio.Event()

    async def running(number: int) -> None:
        housekeeping = stopped.housekeeping()
        once, was_done = housekeeping.once, housekeeping._was_done  # pyright: ignore[reportPrivateUsage]

        async def counted() -> bool:
            passes[number] += 1
            return await once()

        async def looking() -> bool:
            looked.set()
            return await was_done()

        monkeypatch.setattr(housekeeping, "once", counted)
        monkeypatch.setattr(housekeeping, "_was_done", looking)
        await housekeeping.run()

    for number in range(2):
        looked.clear()
        task = asyncio.create_task(running(number))
        async with asyncio.timeout(PATIENCE_S):
            await looked.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert passes == [1, 1]


async def test_engines_that_pass_at_the_same_time_start_what_is_missing_and_nothing_twice(stopped: Engine) -> None:
    async with stopped.working():
        tasks = [stopped.task() for _ in range(3)]
        for task in tasks:
            await task.start("m1", "one")
            await task.until_state("INPUT_REQUIRED")
            await task.handle.terminate("planted")
        await asyncio.gather(*(stopped.housekeeping().once() for _ in range(4)))
        for task in tasks:
            await task.say("m2", "two")
            await task.until(lambda now: now.turn == 2 and now.state.is_interrupted)
            assert await task.replies() == ["re: one", "re: two"]
    assert len(stopped.model.requests) == 6
