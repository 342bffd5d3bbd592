"""Two MCP workers in processes of their own, killed and started again, and one queue each (adr-042).

The worker is the example of the guide, as it stands there.
"""

import asyncio
import random
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.served import PATIENCE_S, ROOT, Served, serving
from tiny_harness.address import Address
from tiny_harness.client import HarnessClient, connect
from tiny_harness.states import TaskState

pytestmark = pytest.mark.timeout(300)

EXAMPLE = ROOT / "docs" / "examples" / "worker.py"
TASKS = 50
BURST = 10
WORKERS = ("bob", "eve")


class Worker:
    """A worker's process."""

    def __init__(self, harness: Served, name: str) -> None:
        self.name = name
        self._harness = harness
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, str(EXAMPLE), f"{self._harness.url}/mcp", self.name),
            env={"TINY_HARNESS_TOKEN": self._harness.token},
        )

    async def kill(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()


@asynccontextmanager
async def at_work(harness: Served) -> AsyncGenerator[list[Worker]]:
    """Both workers, while the block runs."""
    workers = [Worker(harness, name) for name in WORKERS]
    try:
        for worker in workers:
            await worker.start()
        yield workers
    finally:
        for worker in workers:
            await worker.kill()


async def test_fifty_tasks_are_done_once_and_in_order_although_their_workers_are_killed(tmp_path: Path) -> None:
    seed = random.SystemRandom().randrange(10_000)
    print(f"seed {seed}")
    chance = random.Random(seed)
    async with (
        serving(tmp_path / "home", {"rate_limit_per_minute": 1_000_000}) as harness,
        connect(Address(harness.url, token=harness.token), "ann") as ann,
        at_work(harness) as workers,
    ):
        given: dict[str, list[str]] = {name: [] for name in WORKERS}
        for number in range(TASKS):
            name = chance.choice(WORKERS)
            given[name].append((await ann.give(f"task {number}", name)).task_id)
            if number % BURST == BURST - 1:
                worker = chance.choice(workers)
                await worker.kill()
                for other in workers:
                    if other is not worker:
                        await until_done(ann, given[other.name])
                await worker.start()
        for name in WORKERS:
            await until_done(ann, given[name])
            await check(ann, given[name])


async def until_done(client: HarnessClient, task_ids: list[str]) -> None:
    """Wait until all these tasks are done."""
    async with asyncio.timeout(PATIENCE_S * 2):
        for task_id in task_ids:
            while (await client.task(task_id, 0)).state is not TaskState.COMPLETED:  # noqa: ASYNC110 - as a person looks
                await asyncio.sleep(0.2)


async def check(client: HarnessClient, task_ids: list[str]) -> None:
    """Each was done once, and in the order in which it was given."""
    tasks = [await client.task(task_id, 100) for task_id in task_ids]
    assert [task.state for task in tasks] == [TaskState.COMPLETED] * len(tasks)
    ends = [task.updated_at for task in tasks]
    assert all(end is not None for end in ends)
    assert ends == sorted(ends, key=lambda end: end.timestamp() if end else 0.0)
    for task in tasks:
        said = [message.text for message in task.messages if message.role == "agent"]
        assert len(said) == 1, said
        assert said[0].startswith("I have read it")
