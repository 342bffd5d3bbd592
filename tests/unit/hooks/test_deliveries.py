"""The memory of deliveries: nothing runs twice."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tiny_harness.executors.answers import Answer, Failed, Patched
from tiny_harness.executors.delivery import Deliveries, DeliveryKey

KEY: DeliveryKey = ("deploys", "command.invoked.in", "d-1")


class Work:
    """Counts how often it is done; waits where it is told to."""

    def __init__(self, answer: Answer | None = None) -> None:
        self.times = 0
        self.answer = answer or Patched({"n": 1}, 7)
        self.may_end = asyncio.Event()
        self.may_end.set()
        self.has_begun = asyncio.Event()

    async def __call__(self) -> Answer:
        self.times += 1
        self.has_begun.set()
        await self.may_end.wait()
        return self.answer


async def test_a_repeated_delivery_gets_the_same_answer_and_runs_nothing() -> None:
    deliveries, work = Deliveries(), Work(Failed("corr-1"))
    first = await deliveries.once(KEY, work)
    assert await deliveries.once(KEY, work) is first
    assert work.times == 1


async def test_another_key_point_or_delivery_is_another() -> None:
    deliveries, work = Deliveries(), Work()
    for key in (KEY, ("others", *KEY[1:]), (KEY[0], "command.invoked.pre", KEY[2]), (*KEY[:2], "d-2")):
        await deliveries.once(key, work)
    assert work.times == 4


async def test_a_repetition_waits_for_the_one_that_runs() -> None:
    deliveries, work = Deliveries(), Work()
    work.may_end.clear()
    both = asyncio.gather(deliveries.once(KEY, work), deliveries.once(KEY, work))
    async with asyncio.timeout(10):
        await work.has_begun.wait()
        work.may_end.set()
        first, second = await both
    assert first is second
    assert work.times == 1


async def test_the_work_goes_on_when_its_caller_has_gone() -> None:
    deliveries, work = Deliveries(), Work()
    work.may_end.clear()
    caller = asyncio.ensure_future(deliveries.once(KEY, work))
    async with asyncio.timeout(10):
        await work.has_begun.wait()
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller
        work.may_end.set()
        assert await deliveries.once(KEY, work) is work.answer
    assert work.times == 1


async def test_an_answer_is_kept_for_300_seconds() -> None:
    now = [0.0]
    deliveries, work = Deliveries(now=lambda: now[0]), Work()
    await deliveries.once(KEY, work)
    now[0] = 299.0
    await deliveries.once(KEY, work)
    assert work.times == 1
    now[0] = 301.0
    await deliveries.once(KEY, work)
    assert work.times == 2


@pytest.mark.parametrize("bounds", [{"max_answers": 2}, {"max_bytes": 14}], ids=str)
async def test_beyond_its_bounds_the_oldest_answer_is_forgotten(bounds: dict[str, Any]) -> None:
    deliveries, work = Deliveries(**bounds), Work(Patched({}, 7))
    keys: list[DeliveryKey] = [(*KEY[:2], str(number)) for number in range(3)]
    for key in keys:
        await deliveries.once(key, work)
    await deliveries.once(keys[2], work)
    await deliveries.once(keys[1], work)
    assert work.times == 3
    await deliveries.once(keys[0], work)
    assert work.times == 4


async def test_work_that_breaks_is_not_remembered() -> None:
    deliveries = Deliveries()

    def broken() -> Awaitable[Answer]:
        raise RuntimeError("a defect of ours")

    with pytest.raises(RuntimeError):
        await deliveries.once(KEY, broken)
    work: Callable[[], Awaitable[Answer]] = Work()
    assert isinstance(await deliveries.once(KEY, work), Patched)


async def test_closing_cancels_what_runs() -> None:
    deliveries, work = Deliveries(), Work()
    work.may_end.clear()
    caller = asyncio.ensure_future(deliveries.once(KEY, work))
    async with asyncio.timeout(10):
        await work.has_begun.wait()
        await deliveries.close()
        with pytest.raises(asyncio.CancelledError):
            await caller
