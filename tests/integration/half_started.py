"""Hosts a harness whose engine never comes up: `python -m tests.integration.half_started HOME`.

Prints `half` when Temporal answers, the home is locked and everything waits for the engine.
"""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tiny_harness.cli.start import run_async
from tiny_harness.local import SERVICES, running_harness
from tiny_harness.settings import Settings


@asynccontextmanager
async def open_worker(_settings: Settings, **_ports: Any) -> AsyncGenerator[None]:
    """Open an engine that takes for ever. Named in the table that `running_harness` gets."""
    print("half", flush=True)
    await asyncio.Event().wait()
    yield


async def main(home: Path) -> int:
    """Start, and never get there."""
    settings = Settings.model_validate({"store": {"sqlite_path": home / "store.db"}, "model": {"provider": "scripted"}})
    services = {**SERVICES, "worker": "tests.integration.half_started:open_worker"}
    async with running_harness(settings, home=home, services=services):
        return 1


if __name__ == "__main__":
    os._exit(run_async(main(Path(sys.argv[1])), stopped=0))
