"""Runs the demo's harness, and waits at each step into and out of store and model: `launcher`, with tools.

`python -m tests.e2e.demo_launcher HOME [--free]`.
"""

import asyncio
import os
import re
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

from temporalio.client import Client

from tests.e2e.launcher import CALLS, Gate, GatedStore, host
from tiny_harness.bus import Bus
from tiny_harness.cli.demo import demo_settings
from tiny_harness.settings import Settings
from tiny_harness.store import Store
from tiny_harness_engine.models import ModelProvider, ModelReply, ModelRequest, open_provider
from tiny_harness_engine.worker import open_worker as open_real_worker


class GatedCalls(GatedStore):
    """The store, with a gate on both sides of what is written of a tool call, too."""

    def __init__(self, store: Store, gate: Gate, log: Callable[[str], None]) -> None:
        super().__init__(store, gate, log)
        self._claimed: set[tuple[str, int, int, int]] = set()

    async def save_step(self, task_id: str, turn: int, step: int, record: str) -> str:
        await self._gate.pass_through("before step record")
        saved = await self._store.save_step(task_id, turn, step, record)
        task = await self._store.task(task_id)
        assert task is not None
        self._log(f"recorded - {task.snapshot.lifecycle} {turn} {step}")
        await self._gate.pass_through("after step record")
        return saved

    async def claim_call(self, task_id: str, turn: int, step: int, call: int, claim: str) -> str:
        await self._gate.pass_through("before claim")
        claimed = await self._store.claim_call(task_id, turn, step, call, claim)
        if claimed == claim:
            self._claimed.add((task_id, turn, step, call))
            await self._gate.pass_through("before the call")
        return claimed

    async def save_call(self, task_id: str, turn: int, step: int, call: int, record: str) -> str:
        was_made = (task_id, turn, step, call) in self._claimed
        await self._gate.pass_through("after the call" if was_made else "before call record")
        saved = await self._store.save_call(task_id, turn, step, call, record)
        await self._gate.pass_through("after call record")
        return saved


class GatedScript:
    """The scripted model, with a gate on both sides."""

    def __init__(self, model: ModelProvider, gate: Gate, log: Callable[[str], None]) -> None:
        self._model = model
        self._gate = gate
        self._log = log

    async def reply(self, request: ModelRequest, on_text: Callable[[str], None]) -> ModelReply:
        await self._gate.pass_through("before model")
        [lifecycle] = re.findall(r'^ "lifecycle": "(\w+):', request.system, re.MULTILINE)
        self._log(f"called - {lifecycle} {request.turn} {request.step}")
        reply = await self._model.reply(request, on_text)
        await self._gate.pass_through("after model")
        return reply

    async def close(self) -> None:
        await self._model.close()


def open_worker(
    settings: Settings, *, store: Store, bus: Bus, temporal: Client, **engine: Any
) -> AbstractAsyncContextManager[None]:
    """Open the engine with gates. Named in the table that `running_harness` gets."""
    gate = Gate("--free" in sys.argv)
    return open_gated(settings, gate, GatedCalls, GatedScript, store=store, bus=bus, temporal=temporal, **engine)


def open_gated(
    settings: Settings,
    gate: Gate,
    gated_store: type[GatedCalls],
    gated_model: type[GatedScript],
    *,
    store: Store,
    bus: Bus,
    temporal: Client,
    **engine: Any,
) -> AbstractAsyncContextManager[None]:
    """Open the engine with a gate, on store and model wrapped in the given ways; calls of the model are logged."""
    path = settings.store.sqlite_path.with_name(CALLS)

    def log(line: str) -> None:
        with path.open("a") as file:
            file.write(line + "\n")

    @asynccontextmanager
    async def provider(settings: Settings) -> AsyncGenerator[GatedScript]:
        async with open_provider(settings) as model:
            yield gated_model(model, gate, log)

    gated: Any = gated_store(store, gate, log)
    return open_real_worker(settings, store=gated, bus=bus, temporal=temporal, provider=provider, **engine)


if __name__ == "__main__":
    home = Path(sys.argv[1])
    home.mkdir(exist_ok=True)
    document = {**demo_settings(home), "store": {"sqlite_path": home / "store.db"}}
    try:
        asyncio.run(host(home, Settings.model_validate(document), "tests.e2e.demo_launcher:open_worker"))
    finally:
        os._exit(0)
