"""Hubs with real servers in processes of their own."""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from tiny_harness.plugins.servers import Server, StdioServer
from tiny_harness_engine.tools import Limits, ToolHub

SERVERS = Path(__file__).parent / "servers"
PATIENCE_S = 60

OpenHub = Callable[..., Awaitable[ToolHub]]


def stdio(folder: Path, script: str = "orders.py", *kinds: str, name: str = "main", **options: Any) -> StdioServer:
    """Declare a server that runs one of our scripts."""
    return StdioServer(name, sys.executable, (str(SERVERS / script), str(folder), *kinds), plugin="shop", **options)


def lines(file: Path) -> list[str]:
    """Read what a server wrote down."""
    return file.read_text().splitlines() if file.exists() else []


async def until(is_so: Callable[[], bool]) -> None:
    """Wait for something that only another process, or a background task, can tell."""
    async with asyncio.timeout(PATIENCE_S):
        while not is_so():  # noqa: ASYNC110 - another process cannot set an event of ours
            await asyncio.sleep(0.02)


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that waits to be reaped does not."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


@pytest.fixture
async def open_hub(tmp_path: Path) -> AsyncGenerator[OpenHub]:
    """Open hubs, and close them at the end."""
    async with AsyncExitStack() as stack:

        async def open_one(*servers: Server, settle: bool = True, **options: Any) -> ToolHub:
            options.setdefault("limits", Limits())
            options.setdefault("environ", {"PATH": os.environ["PATH"]})
            hub = await stack.enter_async_context(ToolHub(servers, data=tmp_path / "data", **options))
            if settle:
                await hub.settle(PATIENCE_S)
            return hub

        yield open_one
