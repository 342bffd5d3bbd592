"""Runs a harness that kills itself (`-9`) when it comes to a place for the nth time.

`python -m tests.e2e.place_launcher HOME [NAME N]`; what is configured stands in HOME/settings.json.
"""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from temporalio.client import Client

from tests.e2e.demo_launcher import GatedCalls, GatedScript, open_gated
from tests.e2e.launcher import Gate, host
from tiny_harness.bus import Bus
from tiny_harness.settings import Settings
from tiny_harness.store import Commit, Committed, Store
from tiny_harness_engine.models import ModelReply, ModelRequest


class Trap(Gate):
    """A gate that nothing waits at, and that nobody survives at one place."""

    def __init__(self, words: list[str]) -> None:
        super().__init__(is_open=True)
        self._name, self._left = (words[0], int(words[1])) if words else ("", 0)

    async def pass_through(self, name: str) -> None:
        self._left -= name == self._name
        if name == self._name and self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


class TrappedStore(GatedCalls):
    """The store, with a place more: where a task writes down how its sub-task ended."""

    async def commit(self, commit: Commit) -> Committed:
        is_end = commit.cause.startswith("child:") and any(
            child.state.is_terminal for child in commit.snapshot.children
        )
        if is_end:
            await self._gate.pass_through("before a child's end")
        done = await super().commit(commit)
        if is_end:
            await self._gate.pass_through("after a child's end")
        return done


class TrappedScript(GatedScript):
    """The scripted model, with a place more: where it sums up."""

    async def reply(self, request: ModelRequest, on_text: Callable[[str], None]) -> ModelReply:
        if "older part" not in request.system.partition("\n")[0]:
            return await super().reply(request, on_text)
        await self._gate.pass_through("before summary")
        reply = await self._model.reply(request, on_text)
        await self._gate.pass_through("after summary")
        return reply


def open_worker(
    settings: Settings, *, store: Store, bus: Bus, temporal: Client, **engine: Any
) -> AbstractAsyncContextManager[None]:
    """Open the engine with its trap. Named in the table that `running_harness` gets."""
    trap = Trap(sys.argv[2:])
    return open_gated(settings, trap, TrappedStore, TrappedScript, store=store, bus=bus, temporal=temporal, **engine)


if __name__ == "__main__":
    home = Path(sys.argv[1])
    try:
        configured = Settings.model_validate(json.loads((home / "settings.json").read_text()))
        asyncio.run(host(home, configured, "tests.e2e.place_launcher:open_worker"))
    finally:
        os._exit(0)
