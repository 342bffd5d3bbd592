"""The bus within one process."""

import asyncio

from tiny_harness.bus import Frame, Lagged, LocalBus
from tiny_harness.bus.local import MAX_WAITING


def frame(task_id: str, seq: int) -> Frame:
    return Frame(task_id, seq, "{}")


async def test_a_reader_gets_what_it_watches_in_order() -> None:
    bus = LocalBus()
    async with bus.open_reader() as reader, asyncio.timeout(5):
        await reader.watch("a")
        for seq in (1, 2):
            bus.publish(frame("b", seq))
            bus.publish(frame("a", seq))
        frames = reader.frames()
        assert [await anext(frames), await anext(frames)] == [frame("a", 1), frame("a", 2)]


async def test_two_watchers_need_two_unwatches() -> None:
    bus = LocalBus()
    async with bus.open_reader() as reader, asyncio.timeout(5):
        await reader.watch("a")
        await reader.watch("a")
        await reader.unwatch("a")
        bus.publish(frame("a", 1))
        await reader.unwatch("a")
        bus.publish(frame("a", 2))
        await reader.watch("b")
        bus.publish(frame("b", 1))
        frames = reader.frames()
        assert [await anext(frames), await anext(frames)] == [frame("a", 1), frame("b", 1)]


async def test_a_reader_that_is_too_slow_is_told_that_it_missed_some() -> None:
    bus = LocalBus()
    async with bus.open_reader() as reader, asyncio.timeout(5):
        await reader.watch("a")
        for seq in range(MAX_WAITING + 1):
            bus.publish(frame("a", seq))
        frames = reader.frames()
        assert isinstance(await anext(frames), Lagged)
        assert await anext(frames) == frame("a", 1)


def test_publishing_to_nobody_is_fine() -> None:
    LocalBus().publish(frame("a", 1))
