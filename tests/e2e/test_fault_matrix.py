"""The fault matrix: everything that a deployment consists of dies under load, and nobody who uses it is the worse."""

import asyncio
import os
import random
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

import httpx
import pytest

from tests.cluster.cluster import Cluster, running_cluster
from tests.cluster.faults import RECOVERY_S, Faults
from tests.cluster.talker import Talker
from tests.cluster.watcher import Watcher
from tiny_harness.client import HarnessClient, connect
from tiny_harness.states import TaskState

IS_SOAK: Final = bool(os.environ.get("TINY_HARNESS_SOAK"))
DURATION_S: Final = 600 if IS_SOAK else 60
TALKERS: Final = 6
HEAL_S: Final = 180.0
STREAM_PATIENCE_S: Final = 60.0


@pytest.mark.timeout(DURATION_S + 600)
async def test_whatever_is_killed_under_load_nothing_is_lost_or_done_twice(tmp_path: Path) -> None:
    seed = int(os.environ.get("TINY_HARNESS_SEED") or random.randrange(2**32))
    print(f"\nseed {seed}")
    async with running_cluster(tmp_path) as cluster, AsyncExitStack() as stack:
        talkers = [await stack.enter_async_context(talking(cluster, f"t{n}", seed + n)) for n in range(TALKERS)]
        canary = await stack.enter_async_context(connect(await cluster.address("canary"), heal_s=HEAL_S))
        faults = Faults(cluster, random.Random(seed), lambda: prove(canary))
        watchers = await run(cluster, talkers, faults)
        print(faults.table())
        tell(talkers, watchers, faults)
        for talker, watcher in zip(talkers, watchers, strict=True):
            await check(cluster, talker, watcher)
        check_bookings(cluster, talkers)
        check_deployments(cluster, talkers)
        check_pace(talkers, faults)


@asynccontextmanager
async def talking(cluster: Cluster, name: str, seed: int) -> AsyncGenerator[Talker]:
    """Let somebody begin a conversation, over the balancer."""
    async with connect(await cluster.address(name), heal_s=HEAL_S) as client:
        talker = Talker(name, client, cluster, random.Random(seed))
        await talker.begin()
        yield talker


@asynccontextmanager
async def wire(cluster: Cluster, name: str) -> AsyncGenerator[httpx.AsyncClient]:
    """Open a plain HTTP client at the balancer."""
    headers = {"Authorization": f"Bearer {await cluster.token(name)}", "A2A-Version": "1.0"}
    async with httpx.AsyncClient(base_url=cluster.url, headers=headers, timeout=STREAM_PATIENCE_S) as http:
        yield http


async def prove(client: HarnessClient) -> None:
    assert (await client.send("hello")).reply == "1: hello"


async def run(cluster: Cluster, talkers: list[Talker], faults: Faults) -> list[Watcher]:
    """Talk and watch while things die, until every last word is answered; then end all tasks."""
    watchers = [Watcher(talker.task_id) for talker in talkers]
    is_over = asyncio.Event()
    async with AsyncExitStack() as stack, asyncio.TaskGroup() as group:
        https = [await stack.enter_async_context(wire(cluster, talker.name)) for talker in talkers]
        watching = [group.create_task(watcher.watch(http)) for watcher, http in zip(watchers, https, strict=True)]
        talks = [group.create_task(talker.talk(is_over)) for talker in talkers]
        await faults.run(DURATION_S)
        is_over.set()
        async with asyncio.timeout(RECOVERY_S):
            await asyncio.gather(*talks)
            for talker in talkers:
                await talker.client.complete(talker.task_id)
            await asyncio.gather(*watching)
    return watchers


async def check(cluster: Cluster, talker: Talker, watcher: Watcher) -> None:
    """One conversation: every message is in once, and answered once; its reader saw every event once, in order."""
    rows = await cluster.rows(f"select seq from events where task_id = '{talker.task_id}' order by seq")
    stored = [seq for (seq,) in rows]
    assert stored == list(range(1, len(stored) + 1))
    assert watcher.numbers == stored
    once = Counter(dict.fromkeys(talker.said, 1))
    assert Counter({id_: times for id_, times in watcher.received.items() if id_ in once}) == once
    assert watcher.answered == once
    assert (await talker.client.task(talker.task_id)).state is TaskState.COMPLETED


def check_bookings(cluster: Cluster, talkers: list[Talker]) -> None:
    """What must not be done twice was not, and what was told to be done is."""
    booked = Counter(cluster.bookings)
    assert [what for what, times in booked.items() if times > 1] == []
    for talker in talkers:
        for said in talker.said.values():
            if said.result.reply.startswith("Booked "):
                assert booked[said.text.removeprefix("book ")] == 1


def check_deployments(cluster: Cluster, talkers: list[Talker]) -> None:
    """No command was carried out twice, and each that was told to be done once."""
    deployed = Counter(cluster.deployments)
    assert [message_id for message_id, times in deployed.items() if times > 1] == []
    for talker in talkers:
        for message_id, said in talker.said.items():
            if said.result.command is not None and said.result.command.outcome == "done":
                assert deployed[message_id] == 1


def check_pace(talkers: list[Talker], faults: Faults) -> None:
    """No answer took longer than it may after everything was back."""
    for talker in talkers:
        for said in talker.said.values():
            well = max((at for at in faults.recovered_at if at < said.answered_at), default=0.0)
            assert said.answered_at - max(well, said.sent_at) < RECOVERY_S, said.text


def tell(talkers: list[Talker], watchers: list[Watcher], faults: Faults) -> None:
    """Say what the run was like."""
    said = [said for talker in talkers for said in talker.said.values()]
    commands = [s.result.command.outcome for s in said if s.result.command is not None]
    doubts = sum(len(talker.doubts) for talker in talkers)
    booked = sum(s.result.reply.startswith("Booked ") for s in said)
    print(
        f"{len(faults.done)} faults; {len(said)} messages answered, the slowest after "
        f"{max(s.answered_at - s.sent_at for s in said):.1f} s; {booked} bookings, {doubts} times in doubt; "
        f"commands {dict(Counter(commands))}; {sum(w.breaks for w in watchers)} broken streams, "
        f"{sum(len(w.seen) for w in watchers)} events seen"
    )
