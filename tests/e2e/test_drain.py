"""Services that are told to stop: what runs is finished, streams end cleanly, and no client is the worse for it."""

import asyncio
import random
import signal
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final

import httpx
import pytest

from tests.cluster.cluster import Cluster, running_cluster
from tests.cluster.load import loading, wire
from tests.cluster.member import Member
from tests.wire import Frame, Json, read_frames, send, subscribed, user_message
from tiny_harness.cli.start import EXIT_HURRIED
from tiny_harness.client import connect
from tiny_harness.client.events import Received, TaskEvent, TaskShown
from tiny_harness.states import TaskState

PATIENCE_S: Final = 60
SLOW: Final = "take your time"
SLOW_REPLY: Final = "That took its time."


@pytest.fixture(scope="module")
async def cluster(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Cluster]:
    async with running_cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


def gateway(cluster: Cluster, number: int) -> str:
    return f"http://127.0.0.1:{cluster.gateway_ports[number]}"


async def read_to_the_end(http: httpx.AsyncClient, task_id: str, is_open: asyncio.Event) -> list[Frame]:
    """Follow a task until the server ends the stream; a connection that broke raises."""
    seen: list[Frame] = []
    async with http.stream("GET", f"/rest/tasks/{task_id}:subscribe", headers={"Last-Event-ID": "0"}) as response:
        async for frame in read_frames(response):
            seen.append(frame)
            is_open.set()
    return seen


async def test_a_gateway_that_stops_ends_streams_cleanly_and_gives_those_who_wait_their_answer(
    cluster: Cluster,
) -> None:
    token = await cluster.token("ann")
    async with (
        asyncio.timeout(PATIENCE_S),
        wire(gateway(cluster, 0), token) as stopping,
        wire(gateway(cluster, 1), token) as other,
    ):
        task_id = (await send(other, user_message("hello")))["id"]
        is_open = asyncio.Event()
        reading = asyncio.create_task(read_to_the_end(stopping, task_id, is_open))
        await is_open.wait()
        waiting = asyncio.create_task(send(stopping, user_message(SLOW, task_id)))
        async with subscribed(other, task_id, 2) as frames:
            assert (await anext(frames)).state == "WORKING"  # the one who waits has been heard
            await frames.aclose()
        assert await cluster.gateways[0].stop() == 0
        seen = await reading
        assert last_words(await waiting) == SLOW_REPLY
        async with subscribed(other, task_id, seen[-1].seq) as frames:
            seen.append(await anext(frames))
            await frames.aclose()
        await cluster.gateways[0].start()
    assert [frame.seq for frame in seen] == [1, 2, 3, 4]
    assert seen[-1].words == SLOW_REPLY


def last_words(task: Json) -> str:
    return task["status"]["message"]["parts"][0]["text"]


async def test_a_client_in_a_turn_goes_on_at_the_other_gateway(cluster: Cluster) -> None:
    async with asyncio.timeout(PATIENCE_S), connect(await cluster.address("bea"), heal_s=PATIENCE_S) as client:
        for member in cluster.gateways:
            is_in = asyncio.Event()

            def look(event: TaskEvent, is_in: asyncio.Event = is_in) -> None:
                if isinstance(event, Received | TaskShown):
                    is_in.set()

            turn = asyncio.create_task(client.send(SLOW, on_event=look))
            await is_in.wait()
            assert await member.stop() == 0
            result = await turn
            await member.start()
            assert result.reply == SLOW_REPLY
            assert len(result.task.messages) == 2


async def test_an_engine_that_stops_finishes_the_step_that_it_works_on(cluster: Cluster) -> None:
    first, second = cluster.engines
    await second.stop()
    try:
        async with asyncio.timeout(PATIENCE_S), connect(await cluster.address("cem"), heal_s=PATIENCE_S) as client:
            is_in = asyncio.Event()
            turn = asyncio.create_task(client.send(SLOW, on_event=lambda _event: is_in.set()))
            await is_in.wait()
            first.signal(signal.SIGTERM)
            await second.start()
            assert await first.until_ended() == 0
            result = await turn
            assert result.reply == SLOW_REPLY
            usage = (await client.task(result.task.task_id)).usage
            assert usage is not None
            assert usage.calls == 1
    finally:
        await first.start()


async def test_a_service_that_is_told_twice_to_stop_ends_at_once(cluster: Cluster) -> None:
    stopping = cluster.gateways[0]
    token = await cluster.token("dee")
    async with (
        asyncio.timeout(PATIENCE_S),
        wire(gateway(cluster, 0), token) as http,
        connect(await cluster.address("dee", 1)) as client,
    ):
        task_id = (await client.send("hello")).task.task_id
        waiting = asyncio.create_task(send(http, user_message("hang", task_id)))
        async with aclosing(client.follow(task_id)) as events:
            async for event in events:
                if isinstance(event, TaskShown) and event.view.state is TaskState.WORKING:
                    break
                if isinstance(event, Received):
                    break
        stopping.signal(signal.SIGTERM)
        await stopping.until_not_ready()
        assert stopping.exit_status is None, "it did not wait for the one who waits for an answer"
        stopping.signal(signal.SIGTERM)
        assert await stopping.until_ended() == EXIT_HURRIED
        with pytest.raises(httpx.TransportError):
            await waiting
        await client.cancel(task_id)
        await stopping.start()


async def stop_and_start(member: Member) -> None:
    assert await member.stop() == 0
    await member.start()


async def test_a_rolling_restart_of_all_services_under_load_loses_nothing(cluster: Cluster) -> None:
    seed = random.randrange(2**32)
    print(f"\nseed {seed}")

    async def restart() -> None:
        for member in (*cluster.gateways, *cluster.engines, cluster.hooks):
            await stop_and_start(member)

    async with loading(cluster, 3, seed) as load:
        await load.during(restart())
        print(load)
        await load.check()
        assert all(not talker.doubts for talker in load.talkers), "a call was cut off"
