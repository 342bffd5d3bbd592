"""Runs the MCP servers that plugins declare, beside everything else. MCP's SDK is imported only if there is one."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tiny_harness.background import in_background
from tiny_harness.plugins import Server
from tiny_harness.settings import Settings
from tiny_harness_engine.records import CallResult
from tiny_harness_engine.toolbox import Hub, NoHub, OfferedTool

if TYPE_CHECKING:
    from tiny_harness_engine.tools import ToolHub

HEAD_START_S: Final = 0.5
"""For those who wait for the harness itself: starting servers takes all the machine has for a second. Whoever needs a
tool does not wait for it."""
SETTLE_S: Final = 15.0
"""How long whoever needs the tools waits for the servers' first listings; one that is slower joins later. After a crash
everything starts at once, and a step that misses its tools tells the model that there are none."""


class _McpHub:
    """A `ToolHub` that comes up in the background, and whose answers stand in blocks that they cannot close."""

    def __init__(self, servers: Sequence[Server], data: Path) -> None:
        self._servers = servers
        self._data = data
        self._hub: ToolHub | None = None
        self._is_wanted = asyncio.Event()
        self._is_open = asyncio.Event()
        self._is_settled = asyncio.Event()

    async def run(self) -> None:
        """Run the servers until cancelled."""
        with suppress(TimeoutError):
            async with asyncio.timeout(HEAD_START_S):
                await self._is_wanted.wait()
        tools = await asyncio.to_thread(import_module, "tiny_harness_engine.tools")
        async with tools.ToolHub(self._servers, data=self._data) as hub:
            self._hub = hub
            self._is_open.set()
            await hub.settle(SETTLE_S)
            self._is_settled.set()
            await asyncio.Event().wait()

    async def settle(self) -> None:
        self._is_wanted.set()
        await self._is_settled.wait()

    def tools(self) -> Sequence[OfferedTool]:
        return self._hub.tools() if self._hub else ()

    async def call(self, name: str, arguments: str, schema_hash: str | None) -> CallResult:
        self._is_wanted.set()
        await self._is_open.wait()
        assert self._hub is not None  # it is open
        from tiny_harness_engine.tools import result_block

        result = await self._hub.call(name, arguments, schema_hash=schema_hash)
        return CallResult(text=result_block(result), is_error=result.is_error)

    def health(self) -> list[dict[str, Any]]:
        return self._hub.health() if self._hub else []


@asynccontextmanager
async def open_servers(settings: Settings, servers: Sequence[Server]) -> AsyncGenerator[Hub]:
    """Run the servers while the block runs. They come up in its background."""
    if not servers:
        yield NoHub()
        return
    hub = _McpHub(servers, settings.store.sqlite_path.with_name("plugin-data"))
    async with in_background(hub.run()):
        yield hub
