"""Two gateways and two engines behind a balancer: who is connected to which, and who stops, makes no difference."""

import asyncio
import os
import random
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import cycle
from typing import Final

import httpx
import pytest

from tests.cluster.cluster import Cluster, running_cluster
from tests.e2e.test_official_clients import (
    test_a_subscription_lives_through_input_required_until_cancel_ends_it,  # noqa: F401 - run on the cluster, too
    test_refusals_come_as_the_errors_of_the_protocol,  # noqa: F401 - run on the cluster, too
    test_the_javascript_client_holds_the_same_conversation,  # noqa: F401 - run on the cluster, too
    test_the_python_client_holds_a_conversation,  # noqa: F401 - run on the cluster, too
)
from tests.served import Served
from tests.wire import Frame, Json, call, send, subscribed, user_message
from tiny_harness.client import connect
from tiny_harness.envelope import control_part
from tiny_harness.ext.stream import KEY

IS_SOAK: Final = bool(os.environ.get("TINY_HARNESS_SOAK"))
RECONNECTS: Final = 1_000 if IS_SOAK else 100
CONVERSATIONS: Final = 4
PATIENCE_S: Final = 60


@pytest.fixture(scope="module")
async def cluster(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Cluster]:
    async with running_cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture(scope="module")
async def served(cluster: Cluster) -> Served:
    """The balanced cluster as the tests of the official clients know a harness."""
    return Served(cluster.url, await cluster.token("official"), 0, cluster.folder)


@asynccontextmanager
async def gateways(cluster: Cluster, participant: str) -> AsyncGenerator[list[httpx.AsyncClient]]:
    """Open a client of each gateway, past the balancer."""
    headers = {"Authorization": f"Bearer {await cluster.token(participant)}", "A2A-Version": "1.0"}
    urls = [f"http://127.0.0.1:{port}" for port in cluster.gateway_ports]
    limits = httpx.Limits(max_connections=None)
    clients = [httpx.AsyncClient(base_url=url, headers=headers, timeout=PATIENCE_S, limits=limits) for url in urls]
    try:
        yield clients
    finally:
        for client in clients:
            await client.aclose()


async def test_the_balancer_gives_both_gateways_work(cluster: Cluster) -> None:
    before = dict(cluster.balancer.taken)
    address = await cluster.address("ann")
    async with asyncio.timeout(PATIENCE_S):
        for _ in range(4):
            async with connect(address) as client:
                assert (await client.send("hello")).reply == "1: hello"
    assert all(taken > before[port] for port, taken in cluster.balancer.taken.items())


# Reconnects.


@dataclass
class Reader:
    """Somebody who follows a task and is cut off again and again, at one gateway after the other."""

    task_id: str
    seen: list[Frame] = field(default_factory=list[Frame])
    reconnects: int = 0

    @property
    def is_over(self) -> bool:
        return bool(self.seen) and self.seen[-1].state == "COMPLETED"

    async def follow(self, clients: list[httpx.AsyncClient], rng: random.Random) -> None:
        """Read to the end with cursors; each connection brings at most three events."""
        for client in cycle(rng.sample(clients, len(clients))):
            cursor = self.seen[-1].seq if self.seen else 0
            async with subscribed(client, self.task_id, cursor) as frames:
                for _ in range(rng.randint(1, 3)):
                    frame = await anext(frames, None)
                    if frame is not None:
                        self.seen.append(frame)
                await frames.aclose()
            if self.is_over:
                return
            self.reconnects += 1

    async def look(self, clients: list[httpx.AsyncClient], rng: random.Random) -> None:
        """Connect without a cursor until the task has ended, and compare what is shown with GetTask's answer."""
        for client, other in cycle([(clients[0], clients[1]), (clients[1], clients[0])]):
            try:
                async with subscribed(client, self.task_id) as frames:
                    await self._compare(frames, other)
                    await frames.aclose()
            except AssertionError:
                # An ended task is no longer subscribed to; anything else is what this test is about.
                assert (await get(other, self.task_id))["status"]["state"] == "TASK_STATE_COMPLETED"
                return
            self.reconnects += 1
            await asyncio.sleep(rng.uniform(0, 0.05))

    async def _compare(self, frames: AsyncGenerator[Frame], other: httpx.AsyncClient) -> None:
        first = await anext(frames)
        assert "task" in first.payload
        told = await get(other, self.task_id)
        at = int(told["metadata"][KEY]["seq"])
        while first.seq < at:  # it has moved in between: go on to where GetTask saw it
            first = await anext(frames)
        assert first.seq == at
        if "task" in first.payload:
            assert first.body == told
        else:
            assert first.body["status"]["state"] == told["status"]["state"]


async def get(client: httpx.AsyncClient, task_id: str) -> Json:
    return (await call(client, "GetTask", id=task_id))["result"]


async def talk(clients: list[httpx.AsyncClient], task_id: str, readers: list[Reader]) -> None:
    """Hold a conversation, turn after turn, until there have been enough reconnects; then complete it."""
    turn = 1
    while sum(reader.reconnects for reader in readers) < RECONNECTS:
        turn += 1
        await send(clients[turn % 2], user_message(f"turn {turn}", task_id))
    await send(clients[0], user_message("", task_id, [control_part("complete")]))


@pytest.mark.timeout(1_200 if IS_SOAK else 180)
async def test_reconnects_over_two_gateways_lose_repeat_and_reorder_nothing(cluster: Cluster) -> None:
    seed = random.randrange(2**32)
    print(f"\nseed {seed}")
    async with gateways(cluster, "ann") as clients, asyncio.timeout(1_000 if IS_SOAK else 150):
        task_ids = [(await send(clients[0], user_message("turn 1")))["id"] for _ in range(CONVERSATIONS)]
        steady = [Reader(task_id) for task_id in task_ids for _ in range(2)]
        looking = [Reader(task_id) for task_id in task_ids]
        async with asyncio.TaskGroup() as group:
            for number, reader in enumerate(steady):
                group.create_task(reader.follow(clients, random.Random(seed + number)))
            for number, reader in enumerate(looking):
                group.create_task(reader.look(clients, random.Random(seed - number)))
            for task_id in task_ids:
                group.create_task(talk(clients, task_id, steady))
    for reader in steady:
        rows = await cluster.rows(f"select seq from events where task_id = '{reader.task_id}' order by seq")
        stored = [seq for (seq,) in rows]
        assert stored == list(range(1, len(stored) + 1))
        assert [frame.seq for frame in reader.seen] == stored
    crossed = sum(frame.state == "INPUT_REQUIRED" for reader in steady for frame in reader.seen) // 2
    with_cursor, without = (sum(reader.reconnects for reader in readers) for readers in (steady, looking))
    print(f"{with_cursor} reconnects with cursor, {without} without; INPUT_REQUIRED was crossed {crossed} times")
    assert with_cursor >= RECONNECTS
    assert without > 0
