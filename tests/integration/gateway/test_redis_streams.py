"""Two gateways on one store hear one engine through a Redis that is killed, hangs and comes back."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.integration.gateway.fake_engine import FakeEngine
from tests.integration.gateway.served import TOKEN, Caller, Gateway, envelope, words
from tests.integration.gateway.watched_bus import WatchedBus
from tests.valkey import Valkey, running_valkey
from tiny_harness.bus.redis import RedisBus, open_redis_bus
from tiny_harness.ext import stream
from tiny_harness.seal import make_key, parse_ring
from tiny_harness.settings import RedisSettings, Settings
from tiny_harness.store import Store, open_store
from tiny_harness.web_server import bind_tcp, serving
from tiny_harness_gateway.app import create_app

PATIENCE_S = 60
SUBSCRIBERS = 100
QUICK = RedisSettings(timeout=0.5)
RING = parse_ring(make_key(), "")
COMPLETE = {"kind": "control", "action": "complete"}


@asynccontextmanager
async def gateway_on(
    bus: RedisBus, store: Store, engine: FakeEngine, settings: Settings, socket: Path
) -> AsyncGenerator[Gateway]:
    """Serve a gateway with a bus of its own."""
    tcp = bind_tcp("127.0.0.1", 0)
    own = {
        **settings.server.model_dump(),
        "bind": f"127.0.0.1:{tcp.getsockname()[1]}",
        "max_streams": 2 * SUBSCRIBERS,
        "rate_limit_per_minute": 100_000,
    }
    settings = Settings.model_validate({**settings.model_dump(), "server": own})
    app = create_app(settings, store=store, bus=bus, token=TOKEN, engine=engine)
    try:
        async with (
            serving(app, socket, tcp),
            httpx.AsyncClient(timeout=PATIENCE_S, limits=httpx.Limits(max_connections=None)) as http,
        ):
            yield Gateway(settings.server.url, socket, settings, store, WatchedBus(), engine, http, app)
    finally:
        tcp.close()


@asynccontextmanager
async def two_gateways(url: str, settings: Settings, folder: Path) -> AsyncGenerator[tuple[Gateway, Gateway]]:
    """Serve two gateways, each with its own connection to Redis, as the engine has its own."""
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(open_store(settings))
        buses = [await stack.enter_async_context(open_redis_bus(url, QUICK, RING)) for _ in range(3)]
        engine = await stack.enter_async_context(FakeEngine(store, buses[0]).running())
        first, second = [
            await stack.enter_async_context(gateway_on(bus, store, engine, settings, folder / f"s{number}"))
            for number, bus in enumerate(buses[1:])
        ]
        yield first, second


async def page(gateway: Gateway, path: str) -> tuple[int, dict[str, Any]]:
    answer = await gateway.http.get(f"{gateway.url}/{path}")
    return answer.status_code, answer.json()


async def until_page(gateway: Gateway, path: str, **wanted: Any) -> None:
    """Wait until a page of health says so."""
    async with asyncio.timeout(PATIENCE_S):
        while not wanted.items() <= (await page(gateway, path))[1].items():  # noqa: ASYNC110 - a probe asks
            await asyncio.sleep(0.02)


async def numbers(caller: Caller, task_id: str, opened: asyncio.Semaphore) -> list[int]:
    """Follow a task from its first event to its end; the numbers that came, in order."""
    found: list[int] = []
    cursor = {"Last-Event-ID": "0"}
    async with caller.stream("SubscribeToTask", {"id": task_id}, **cursor) as events:
        async for event in events:
            if event.id is not None:
                found.append(event.id)
                if len(found) == 1:
                    opened.release()
    return found


async def test_a_hundred_subscribers_of_two_gateways_see_one_sequence_while_redis_flaps(
    settings: Settings, tmp_path: Path
) -> None:
    async with (
        running_valkey(tmp_path) as server,
        two_gateways(server.url, settings, tmp_path) as gateways,
        asyncio.TaskGroup() as group,
    ):
        callers = [gateway.caller() for gateway in gateways]
        task_id = await callers[0].start()
        opened = asyncio.Semaphore(0)
        following = [group.create_task(numbers(callers[number % 2], task_id, opened)) for number in range(SUBSCRIBERS)]
        async with asyncio.timeout(PATIENCE_S):
            for _ in range(SUBSCRIBERS):
                await opened.acquire()
        sent = 0
        for fault in (no_fault, Valkey.kill, Valkey.start, hang, wake, Valkey.kill, Valkey.start, no_fault):
            for _ in range(4):
                await send(callers[sent % 2], task_id, sent, waits=False)
                sent += 1
            await fault(server)
            # One that waits: whatever the bus does, a turn's end reaches its sender, and a burst goes on beside it.
            await send(callers[sent % 2], task_id, sent, waits=True)
            sent += 1
        await callers[1].call("SendMessage", {"message": envelope(COMPLETE, "done", task_id)})
        async with asyncio.timeout(PATIENCE_S):
            seen = [await one for one in following]
        stored = [event.seq for event in await gateways[0].store.events(task_id, 0, 10_000)]
        assert len(stored) > 2 * sent
        assert stored == list(range(1, len(stored) + 1))
        assert [one for one in seen if one != stored] == []


async def send(caller: Caller, task_id: str, number: int, *, waits: bool) -> None:
    params = {"message": words("go on", f"more-{number}", task_id), "configuration": {"returnImmediately": not waits}}
    assert (await caller.call("SendMessage", params)).result["task"]["id"] == task_id


async def no_fault(_server: Valkey) -> None:
    return None


async def hang(server: Valkey) -> None:
    server.pause()


async def wake(server: Valkey) -> None:
    server.resume()


async def test_a_gateway_without_redis_is_not_ready_serves_streams_all_the_same_and_needs_no_restart(
    settings: Settings, tmp_path: Path
) -> None:
    server = Valkey(tmp_path)
    async with two_gateways(server.url, settings, tmp_path) as (gateway, _):
        assert await page(gateway, "readyz") == (503, {"store": True, "temporal": True, "bus": False})
        assert await page(gateway, "healthz") == (200, {"status": "ok", "streams": "polling"})
        ann = gateway.caller()
        task_id = await ann.start()
        await send(ann, task_id, 1, waits=True)
        try:
            await server.start()
            await until_page(gateway, "readyz", bus=True)
            await until_page(gateway, "healthz", streams="bus")
            await server.kill()
            await until_page(gateway, "healthz", streams="polling")
            # Lost later: all gateways lose it together, so they stay where they are.
            assert (await page(gateway, "readyz"))[0] == 200
            await send(ann, task_id, 2, waits=True)
            await server.start()
            await until_page(gateway, "healthz", streams="bus")
            await send(ann, task_id, 3, waits=True)
        finally:
            await server.kill()


async def test_deltas_travel_too_and_only_to_those_who_asked(settings: Settings, tmp_path: Path) -> None:
    async with running_valkey(tmp_path) as server, two_gateways(server.url, settings, tmp_path) as (first, second):
        for gateway in (first, second):
            await until_page(gateway, "healthz", streams="bus")
        engine = first.engine
        ann = second.caller()
        engine.hold()
        task_id = await ann.start()
        # Their first event comes from the store, once the task is watched.
        start = {"Last-Event-ID": "0"}
        asks = {**start, "A2A-Extensions": stream.URI}
        async with (
            asyncio.timeout(PATIENCE_S),
            ann.stream("SubscribeToTask", {"id": task_id}, **asks) as told,
            ann.stream("SubscribeToTask", {"id": task_id}, **start) as untold,
        ):
            assert [(await told.next()).seq, (await untold.next()).seq] == [1, 1]
            for index in range(20):
                engine.say_piece(task_id, f"piece {index}", index)
            deltas = [await told.next() for _ in range(20)]
            assert all(event.is_delta for event in deltas)
            assert [f"piece {index}" in event.raw for index, event in enumerate(deltas)] == [True] * 20
            engine.release()
            assert [(await told.next()).seq, (await untold.next()).seq] == [2, 2]
