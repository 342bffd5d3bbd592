"""Runs a harness whose engine reports each step into and out of store and model, and waits to be told to go on.

Composed of wrapped ports, so that production code needs no switch for kill tests. A process of its own:
`python -m tests.e2e.launcher HOME [--free]`. Lines on standard output: `ready SOCKET`, `at NAME` before each crossing;
one line on standard input lets it pass. With `--free` it waits for nothing.
"""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

from temporalio.client import Client

from tiny_harness.bus import Bus
from tiny_harness.local import SERVICES, running_harness
from tiny_harness.settings import Settings
from tiny_harness.store import Commit, Committed, Store
from tiny_harness_engine.models import ModelReply, ModelRequest
from tiny_harness_engine.worker import open_worker as open_real_worker

CALLS = "model-calls.log"
"""In the home: one line per call of the model and per recorded step, to be read after the process was killed."""


class Gate:
    """Where the process stops until the test says go."""

    def __init__(self, is_open: bool) -> None:
        self._is_open = is_open
        self._lock = asyncio.Lock()  # one crossing at a time has the test's attention

    async def pass_through(self, name: str) -> None:
        if self._is_open:
            return
        async with self._lock:
            print(f"at {name}", flush=True)
            await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)


class GatedStore:
    """The store, with a gate on both sides of each write."""

    def __init__(self, store: Store, gate: Gate, log: Callable[[str], None]) -> None:
        self._store = store
        self._gate = gate
        self._log = log

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def commit(self, commit: Commit) -> Committed:
        what = commit.cause.partition(":")[0]
        await self._gate.pass_through(f"before commit {what}")
        done = await self._store.commit(commit)
        await self._gate.pass_through(f"after commit {what}")
        return done

    async def save_step(self, task_id: str, turn: int, step: int, record: str) -> str:
        await self._gate.pass_through("before step record")
        saved = await self._store.save_step(task_id, turn, step, record)
        self._log(f"recorded {task_id} {turn} {step}")
        await self._gate.pass_through("after step record")
        return saved


class GatedModel:
    """A model that repeats what it is told, with a gate on both sides."""

    def __init__(self, gate: Gate, log: Callable[[str], None]) -> None:
        self._gate = gate
        self._log = log

    async def reply(self, request: ModelRequest, on_text: Callable[[str], None]) -> ModelReply:
        newest = request.messages[-1]
        await self._gate.pass_through("before model")
        self._log(f"called {newest.message_id} {request.turn} {request.step}")
        text = "re: " + newest.text
        on_text(text)
        await self._gate.pass_through("after model")
        return ModelReply(text)

    async def close(self) -> None:
        return None


def open_worker(
    settings: Settings, *, store: Store, bus: Bus, temporal: Client, **engine: Any
) -> AbstractAsyncContextManager[None]:
    """Open the engine with gates. Named in the table that `running_harness` gets."""
    gate = Gate("--free" in sys.argv)
    path = settings.store.sqlite_path.with_name(CALLS)

    def log(line: str) -> None:
        with path.open("a") as file:
            file.write(line + "\n")

    @asynccontextmanager
    async def provider(_settings: Settings) -> AsyncGenerator[GatedModel]:
        yield GatedModel(gate, log)

    gated: Any = GatedStore(store, gate, log)
    return open_real_worker(settings, store=gated, bus=bus, temporal=temporal, provider=provider, **engine)


async def host(home: Path, settings: Settings, worker: str) -> None:
    """Host a harness until killed or told to stop.

    Args:
        home: Its home.
        settings: How.
        worker: What opens its engine, `module:function`.
    """
    loop, this = asyncio.get_running_loop(), asyncio.current_task()
    assert this is not None
    for number in (signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, this.cancel)
    async with running_harness(settings, home=home, services={**SERVICES, "worker": worker}) as harness:
        print(f"ready {harness.address.socket}", flush=True)
        await asyncio.Event().wait()


def settings_for(home: Path) -> Settings:
    """Configure a harness that keeps everything in a home."""
    return Settings.model_validate(
        {
            "store": {"sqlite_path": home / "store.db"},
            "server": {"participant": "ann", "rate_limit_per_minute": 100_000},
            "model": {"provider": "scripted"},
        }
    )


if __name__ == "__main__":
    Path(sys.argv[1]).mkdir(exist_ok=True)
    try:
        home = Path(sys.argv[1])
        asyncio.run(host(home, settings_for(home), "tests.e2e.launcher:open_worker"))
    finally:
        os._exit(0)
