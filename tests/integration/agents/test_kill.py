"""The harness killed (`-9`) while it gives work to an agent: nothing is sent twice, nothing is lost."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from starlette.types import ASGIApp

from tests.integration.agents.site import Site, losing, serving_agent, until
from tests.integration.agents.test_two_harnesses import SCRIPT
from tiny_harness.address import Address
from tiny_harness.client import connect
from tiny_harness.errors import ConnectionLost

PATIENCE_S = 110
ROOT = Path(__file__).parents[3]


@asynccontextmanager
async def served(home: Path) -> AsyncGenerator[tuple[asyncio.subprocess.Process, Address]]:
    """Run `tiny-harness serve` in a home that has its configuration; it is killed at the end at the latest."""
    with (home / "stderr.log").open("ab") as errors:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tiny_harness", "--config", str(home / "config.toml"), "serve"),
            cwd=ROOT,
            env={**os.environ, "HOME": str(home)},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
        )
    assert process.stdout is not None
    try:
        said, _, url = (await process.stdout.readline()).decode().strip().partition(" ")
        assert said == "serving", (home / "stderr.log").read_text()[-2_000:]
        yield process, Address(url, token=(home / "token").read_text().strip())
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


def furnish(home: Path, site: Site) -> None:
    home.mkdir(mode=0o700)
    (home / "script.toml").write_text(SCRIPT)
    sections: dict[str, dict[str, Any]] = {
        "server": {"bind": "127.0.0.1:0", "participant": "ann", "rate_limit_per_minute": 100_000},
        "store": {"sqlite_path": str(home / "store.db")},
        "model": {"provider": "scripted"},
        "scripted": {"script": str(home / "script.toml")},
        "agents.desk": {"url": site.url},
    }
    lines = [
        line
        for name, keys in sections.items()
        for line in (f"[{name}]", *(f"{key} = {json.dumps(value)}" for key, value in keys.items()))
    ]
    (home / "config.toml").write_text("\n".join(lines))


MOMENTS = ("card", "SendMessage", "SubscribeToTask", "GetTask")
"""What the harness is asking the agent for when it is killed."""


async def test_a_harness_that_is_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    async with asyncio.timeout(PATIENCE_S):  # side by side: most of it is waiting until the dead are missed
        jobs = await asyncio.gather(*(_kill_at(moment, tmp_path / moment) for moment in MOMENTS))
    assert dict(zip(MOMENTS, jobs, strict=True)) == dict.fromkeys(MOMENTS, 1)


async def _kill_at(moment: str, home: Path) -> int:
    """Kill a harness at a moment, start it again, see the result read; say how often the work was given."""
    async with serving_agent() as site:
        furnish(home, site)
        async with served(home) as (process, address), connect(address, "ann", heal_s=0.5) as client:
            site.meddle = lambda called, before: _killer(process, site, called == moment and before == 0)
            with suppress(ConnectionLost):  # it may die before or after the turn's end
                await client.send("delegate desk: count the stars")
            await process.wait()
        async with served(home) as (process, address), connect(address, "ann") as client:
            [task] = (await client.tasks()).tasks
            job = await site.desk.job()
            await job.done(says="seven")

            async def is_told() -> bool:
                return "seven, they say" in (await client.task(task.task_id)).messages[-1].text

            await until(is_told)
        return len(site.desk.jobs)


def _killer(process: asyncio.subprocess.Process, site: Site, is_now: bool) -> ASGIApp | None:
    """Let the agent do what it was asked, while who asked is killed and never hears of it."""
    if not is_now:
        return None
    process.send_signal(signal.SIGKILL)
    return losing(site.agent)
