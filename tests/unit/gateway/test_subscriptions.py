"""The stream cursor: nothing lost, repeated or reordered, whatever the bus does."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from tiny_harness.bus import Frame, LocalBus, local
from tiny_harness.errors import Unavailable
from tiny_harness.events import Event
from tiny_harness.store import Store
from tiny_harness_gateway import subscriptions
from tiny_harness_gateway.subscriptions import Feed, Subscriptions

pytestmark = pytest.mark.timeout(10)


class FakeLog:
    """A store of one task's log."""

    def __init__(self) -> None:
        self.rows: list[Event] = []
        self.reads = 0
        self.compared = 0
        self.is_down = False
        self.asked = asyncio.Event()

    def write(self, count: int = 1) -> None:
        for _ in range(count):
            self.rows.append(Event("t", len(self.rows) + 1, "", "state", f"e{len(self.rows) + 1}"))

    async def events(self, task_id: str, after: int, limit: int) -> Sequence[Event]:
        self.reads += 1
        return [event for event in self.rows if event.seq > after][:limit]

    async def heads(self, task_ids: Sequence[str]) -> dict[str, int]:
        self.compared += 1
        self.asked.set()
        if self.is_down:
            raise Unavailable("down")
        return dict.fromkeys(task_ids, len(self.rows))


@asynccontextmanager
async def following(log: FakeLog, after: int = 0, deltas: bool = False) -> AsyncGenerator[tuple[LocalBus, Any, Any]]:
    bus = LocalBus()
    watching = Subscriptions(cast(Store, log), bus)
    async with asyncio.timeout(5), watching.running(), watching.follow("t", after, deltas=deltas) as feed:
        yield bus, feed.items(), watching


def frame(seq: int | None, payload: str = "") -> Frame:
    return Frame("t", seq, payload or f"e{seq}", "state" if seq else None)


async def take(items: AsyncGenerator[Event | Frame], count: int) -> list[str]:
    return [(await anext(items)).payload for _ in range(count)]


async def test_the_store_is_replayed_in_pages_and_then_the_bus_is_followed() -> None:
    log = FakeLog()
    log.write(subscriptions.PAGE * 2 + 3)
    async with following(log, after=2) as (bus, items, _):
        seen = await take(items, subscriptions.PAGE * 2 + 1)
        assert seen == [event.payload for event in log.rows[2:]]
        reads = log.reads
        log.write()
        bus.publish(frame(len(log.rows)))
        assert await take(items, 1) == [f"e{len(log.rows)}"]
        assert log.reads == reads


async def test_frames_that_are_known_are_dropped_and_a_jump_is_filled_from_the_store() -> None:
    log = FakeLog()
    log.write(2)
    async with following(log) as (bus, items, _):
        assert await take(items, 2) == ["e1", "e2"]
        log.write(3)
        for seq in (1, 2, 5, 3, 4):  # repeated, lost, late
            bus.publish(frame(seq))
        assert await take(items, 3) == ["e3", "e4", "e5"]
        log.write()
        bus.publish(frame(6))
        assert await take(items, 1) == ["e6"]


async def test_a_delta_of_a_reply_that_is_out_is_not_given_after_it() -> None:
    log = FakeLog()
    log.write()
    async with following(log, deltas=True) as (bus, items, _):
        assert await take(items, 1) == ["e1"]
        log.write(2)
        bus.publish(frame(None, "stale"))
        bus.publish(frame(3))
        bus.publish(frame(None, "fresh"))
        assert await take(items, 4) == ["stale", "e2", "e3", "fresh"]
        feed = Feed(cast(Store, log), asyncio.Semaphore(), "t", 0, True)
        for one in (frame(None, "stale"), frame(3), frame(None, "fresh")):
            feed.offer(one)
        assert await take(feed.items(), 4) == ["e1", "e2", "e3", "fresh"]


async def test_deltas_are_kept_from_those_who_did_not_ask() -> None:
    log = FakeLog()
    async with following(log) as (bus, items, _):
        bus.publish(frame(None, "piece"))
        log.write()
        bus.publish(frame(1))
        assert await take(items, 1) == ["e1"]


async def test_a_reader_far_behind_costs_bounded_memory_and_reads_the_store() -> None:
    log = FakeLog()
    feed = Feed(cast(Store, log), asyncio.Semaphore(), "t", 0, False)
    for _ in range(3 * subscriptions.MAX_WAITING):
        log.write()
        feed.offer(frame(len(log.rows)))
        assert len(feed._waiting) <= subscriptions.MAX_WAITING
    assert await take(feed.items(), len(log.rows)) == [event.payload for event in log.rows]


async def test_one_query_finds_what_the_bus_lost_for_all_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscriptions, "CHECK_INTERVAL_S", 0.01)
    log = FakeLog()
    async with following(log) as (_, items, watching), watching.follow("t", 0) as second:
        waiting = asyncio.create_task(take(items, 1))
        log.asked.clear()
        log.write()
        assert await waiting == ["e1"]
        assert await take(second.items(), 1) == ["e1"]
        await log.asked.wait()


async def test_a_bus_that_lagged_makes_all_streams_look_at_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "MAX_WAITING", 1)
    log = FakeLog()
    log.write()
    async with following(log) as (bus, items, _):
        assert await take(items, 1) == ["e1"]
        log.write(2)
        bus.publish(frame(3))
        bus.publish(frame(1))  # pushes the other one out; by itself it tells nothing
        assert await take(items, 2) == ["e2", "e3"]
        assert log.compared == 1


async def test_a_store_that_is_down_for_a_while_ends_no_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscriptions, "CHECK_INTERVAL_S", 0.01)
    log = FakeLog()
    async with following(log) as (_, items, _watching):
        waiting = asyncio.create_task(take(items, 1))
        log.is_down = True
        log.asked.clear()
        await log.asked.wait()
        log.is_down = False
        log.write()
        assert await waiting == ["e1"]


async def test_all_feeds_end_when_streams_are_stopped_and_later_ones_at_once() -> None:
    log = FakeLog()
    async with following(log) as (_, items, watching):
        waiting = asyncio.create_task(anext(items, None))
        await asyncio.sleep(0)
        watching.close_feeds()
        assert await waiting is None
        async with watching.follow("t", 0) as late:
            assert await anext(late.items(), None) is None
