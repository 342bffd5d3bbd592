"""Several conversations at once over the balancer, each with a reader, and what must be true of them at the end."""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Final

import httpx

from tests.cluster.cluster import Cluster
from tests.cluster.talker import Said, Talker
from tests.cluster.watcher import Watcher
from tiny_harness.client import connect
from tiny_harness.states import TaskState

HEAL_S: Final = 180.0
STREAM_PATIENCE_S: Final = 60.0
END_S: Final = 120.0
"""How long the last answers may take once all is well."""


@dataclass(frozen=True)
class Load:
    """Everybody who uses a cluster."""

    cluster: Cluster
    talkers: list[Talker]
    watchers: list[Watcher]
    https: list[httpx.AsyncClient]
    """The watchers' connections."""

    async def during(self, work: Awaitable[None]) -> None:
        """Let all talk while something is done to the cluster, and to the last answer; then end all tasks."""
        is_over = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            reading = [group.create_task(w.watch(http)) for w, http in zip(self.watchers, self.https, strict=True)]
            talks = [group.create_task(talker.talk(is_over)) for talker in self.talkers]
            await work
            is_over.set()
            try:
                async with asyncio.timeout(END_S):
                    await asyncio.gather(*talks)
                    for talker in self.talkers:
                        await talker.client.complete(talker.task_id)
                    await asyncio.gather(*reading)
            except TimeoutError:
                waiting = {talker.task_id: [*talker.waiting.values()] for talker in self.talkers}
                raise AssertionError(f"no end in {END_S:.0f} s; unanswered: {waiting}") from None

    @property
    def said(self) -> dict[str, Said]:
        """All messages that were answered, by their ids."""
        return {id_: said for talker in self.talkers for id_, said in talker.said.items()}

    async def check(self) -> None:
        """Nothing was lost, repeated or done twice, and readers saw every event once and in order."""
        for talker, watcher in zip(self.talkers, self.watchers, strict=True):
            await self._check_task(talker, watcher)
        self._check_bookings()
        self._check_deployments()

    async def _check_task(self, talker: Talker, watcher: Watcher) -> None:
        statement = f"select seq from events where task_id = '{talker.task_id}' order by seq"
        stored = [seq for (seq,) in await self.cluster.rows(statement)]
        assert stored == list(range(1, len(stored) + 1))
        assert watcher.numbers == stored
        once = Counter(dict.fromkeys(talker.said, 1))
        assert Counter({id_: times for id_, times in watcher.received.items() if id_ in once}) == once
        assert watcher.answered == once
        assert (await talker.client.task(talker.task_id)).state is TaskState.COMPLETED

    def _check_bookings(self) -> None:
        booked = Counter(self.cluster.bookings)
        assert [what for what, times in booked.items() if times > 1] == []
        for said in self.said.values():
            if said.result.reply.startswith("Booked "):
                assert booked[said.text.removeprefix("book ")] == 1

    def _check_deployments(self) -> None:
        deployed = Counter(self.cluster.deployments)
        assert [id_ for id_, times in deployed.items() if times > 1] == []
        for id_, said in self.said.items():
            if said.result.command is not None and said.result.command.outcome == "done":
                assert deployed[id_] == 1

    def __str__(self) -> str:
        """Say what the load was."""
        said = self.said.values()
        outcomes = Counter(each.result.command.outcome for each in said if each.result.command is not None)
        booked = sum(each.result.reply.startswith("Booked ") for each in said)
        slowest = max(each.answered_at - each.sent_at for each in said)
        return (
            f"{len(said)} messages answered, the slowest after {slowest:.1f} s; {booked} bookings, "
            f"{sum(len(talker.doubts) for talker in self.talkers)} in doubt; commands {dict(outcomes)}; "
            f"{sum(watcher.breaks for watcher in self.watchers)} broken streams, "
            f"{sum(len(watcher.seen) for watcher in self.watchers)} events seen"
        )


@asynccontextmanager
async def loading(cluster: Cluster, count: int, seed: int) -> AsyncGenerator[Load]:
    """Begin conversations; a seed decides what is said in them."""
    async with AsyncExitStack() as stack:
        talkers: list[Talker] = []
        https: list[httpx.AsyncClient] = []
        for number in range(count):
            name = f"t{number}"
            client = await stack.enter_async_context(connect(await cluster.address(name), heal_s=HEAL_S))
            talkers.append(Talker(name, client, cluster, random.Random(seed + number)))
            https.append(await stack.enter_async_context(wire(cluster.url, await cluster.token(name))))
        await asyncio.gather(*(talker.begin() for talker in talkers))
        yield Load(cluster, talkers, [Watcher(talker.task_id) for talker in talkers], https)


@asynccontextmanager
async def wire(url: str, token: str) -> AsyncGenerator[httpx.AsyncClient]:
    """Open a plain HTTP client for A2A."""
    headers = {"Authorization": f"Bearer {token}", "A2A-Version": "1.0"}
    async with httpx.AsyncClient(base_url=url, headers=headers, timeout=STREAM_PATIENCE_S) as http:
        yield http
