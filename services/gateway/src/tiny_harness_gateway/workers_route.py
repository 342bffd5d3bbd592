"""Serves the workers' MCP endpoint, and opens it when the first worker calls: most harnesses have none."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from starlette.types import Receive, Scope, Send

from tiny_harness.background import in_background
from tiny_harness_gateway.worker_tools import WorkerTools

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager


WORKERS_PATH: Final = "/mcp"


class WorkersRoute:
    """The endpoint, an ASGI app; answers while `running`."""

    def __init__(self, tools: WorkerTools) -> None:
        self._tools = tools
        self._is_wanted = asyncio.Event()
        self._is_up = asyncio.Event()
        self._is_over = asyncio.Event()
        self._manager: StreamableHTTPSessionManager | None = None

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Answer calls while the block runs."""
        async with in_background(self._run(), self._stop):
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        self._is_wanted.set()
        await self._is_up.wait()
        if self._manager is None:
            raise RuntimeError("the workers' endpoint is closed")
        await self._manager.handle_request(scope, receive, send)

    async def _run(self) -> None:
        """Hold the SDK's task group, in a task of its own, from the first call on."""
        await self._is_wanted.wait()
        try:
            if not self._is_over.is_set():
                await self._serve()
        finally:
            self._manager = None
            self._is_up.set()

    async def _serve(self) -> None:
        manager = await asyncio.to_thread(self._open)
        async with manager.run():
            self._manager = manager
            self._is_up.set()
            await self._is_over.wait()

    def _open(self) -> "StreamableHTTPSessionManager":
        from tiny_harness_gateway.workers import session_manager  # late: it imports the MCP SDK

        return session_manager(self._tools)

    def _stop(self) -> None:
        self._is_over.set()
        self._is_wanted.set()
