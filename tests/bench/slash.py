"""A built-in slash command, against what a durable one cannot do without."""

import uuid

import httpx
from temporalio.client import Client
from temporalio.worker import Worker

from tests.bench.a2a import call, message, open_task
from tests.bench.bare import Open, nothing
from tests.bench.table import row
from tests.bench.timing import WARM_UP, medians, timed

ROUNDS = 100
COMMANDS = ("/status", "/effort high")
"""One that only reads, and one that changes the task."""


async def measure_slash(ours: httpx.AsyncClient, temporal: Client) -> None:
    """A command over HTTP, from the request to its reply, against an update with one local activity, in turns."""
    async with Worker(temporal, task_queue="bare", workflows=[Open], activities=[nothing]):
        bare = await temporal.start_workflow(Open.run, id=f"open-{uuid.uuid4().hex}", task_queue="bare")
        for text in COMMANDS:
            parked = [await open_task(ours) for _ in range(WARM_UP + ROUNDS)]
            base, took = await medians(
                timed(lambda: bare.execute_update(Open.ask, "hi")),
                lambda text=text, parked=parked: _command(ours, text, parked.pop()["id"]),
                rounds=ROUNDS,
            )
            row(
                f"{text} over HTTP",
                f"{took * 1e3:.1f} ms = {took / base:.2f} x",
                f"{base * 1e3:.1f} ms bare update",
                "<= 1.6 x",
            )
        await bare.terminate()


async def _command(client: httpx.AsyncClient, text: str, task_id: str) -> float:
    """Measure a command on a task that has had one turn and is parked, as its workflow is, too; blocking."""
    command = message(text, task_id)
    return await timed(lambda: call(client, "SendMessage", message=command))()
