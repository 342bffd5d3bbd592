"""Opens the MCP servers that plugins declare. MCP's SDK is imported only if there is one."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from tiny_harness.plugins import Server
from tiny_harness.settings import Settings
from tiny_harness_engine.records import CallResult
from tiny_harness_engine.toolbox import Hub, NoHub, OfferedTool

if TYPE_CHECKING:
    from tiny_harness_engine.tools import ToolHub

SETTLE_S: Final = 5.0
"""How long a start waits for the servers' first listings; one that is slower joins later."""


class _McpHub:
    """A `ToolHub` whose answers stand in blocks that they cannot close."""

    def __init__(self, hub: "ToolHub") -> None:
        self._hub = hub

    def tools(self) -> Sequence[OfferedTool]:
        return self._hub.tools()

    async def call(self, name: str, arguments: str, schema_hash: str | None) -> CallResult:
        from tiny_harness_engine.tools import result_block

        result = await self._hub.call(name, arguments, schema_hash=schema_hash)
        return CallResult(text=result_block(result), is_error=result.is_error)

    def health(self) -> list[dict[str, Any]]:
        return self._hub.health()


@asynccontextmanager
async def open_servers(settings: Settings, servers: Sequence[Server]) -> AsyncGenerator[Hub]:
    """Run the servers while the block runs."""
    if not servers:
        yield NoHub()
        return
    from tiny_harness_engine.tools import ToolHub

    async with ToolHub(servers, data=settings.store.sqlite_path.with_name("plugin-data")) as hub:
        await hub.settle(SETTLE_S)
        yield _McpHub(hub)
