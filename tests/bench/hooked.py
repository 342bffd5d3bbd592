"""A turn with ten hooks on a point, against the same turn without, in turns."""

from pathlib import Path

import httpx

from tests.bench.a2a import call, message, open_client, open_task, settings_for
from tests.bench.executors import WORDS
from tests.bench.table import row
from tests.bench.timing import medians, timed
from tiny_harness.hooks import Executor, call_function
from tiny_harness.hooks.contexts import HookContext
from tiny_harness.hooks.points import parse_point
from tiny_harness.local import running_harness
from tiny_harness.plugins import Plugin

HOOKS = 10
ROUNDS = 150
POINTS = ("request.received.pre", "llm.invoked.pre")


async def measure_hooked(plain: httpx.AsyncClient, home: Path) -> None:
    """Follow-up turns on two harnesses side by side, one of them with hooks."""
    for point in POINTS:
        folder = home / point
        folder.mkdir()
        async with (
            running_harness(settings_for(folder), home=folder, plugins=[ten_hooks(point)]) as harness,
            open_client(harness.address.socket) as hooked,
        ):
            base, took = await medians(lambda: turn(plain), lambda hooked=hooked: turn(hooked), rounds=ROUNDS)
        row(
            f"a turn with {HOOKS} hooks at {point}",
            f"{took * 1e3:.1f} ms = {took / base - 1:+.1%}",
            f"{base * 1e3:.1f} ms without",
            "<= +10 %",
        )


async def turn(client: httpx.AsyncClient) -> float:
    """Measure a follow-up turn, blocking."""
    task = await open_task(client)
    again = message(WORDS, task["id"])
    return await timed(lambda: call(client, "SendMessage", message=again))()


def ten_hooks(point: str) -> Plugin:
    """Make a plugin of hooks that look at what they are shown and let it pass."""

    async def look(context: HookContext) -> None:
        assert context.task.task_id

    operation, phase = parse_point(point)
    return Plugin(
        "looks",
        executors=tuple(Executor(f"looks/{n}", operation, phase, call_function(look)) for n in range(HOOKS)),
    )
