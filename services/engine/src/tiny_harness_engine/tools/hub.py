"""All tools of a process: the only way from the harness to a server of tools."""

import asyncio
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any, Self

from tiny_harness.background import in_background
from tiny_harness.errors import UnknownTool
from tiny_harness.plugins.servers import Server
from tiny_harness.redact import Redactor, configured_secrets
from tiny_harness_engine.tools.connection import OnProgress
from tiny_harness_engine.tools.credentials import ambiguous
from tiny_harness_engine.tools.result import ToolResult
from tiny_harness_engine.tools.server import DEFAULT_LIMITS, Limits, ToolServer
from tiny_harness_engine.tools.tool import Tool


class ToolHub:
    """The servers and their tools. Servers start in the background of the block and end with it."""

    def __init__(
        self,
        servers: Iterable[Server],
        *,
        data: Path,
        limits: Limits = DEFAULT_LIMITS,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        """Start nothing yet.

        Args:
            servers: As plugins declare them. Of two with one name the first counts.
            data: Where plugins keep their data, a folder each; made when it is needed.
            limits: How long things may take.
            environ: Our environment: credentials, and the little that a process gets of it.
        """
        declared = {server.full_name: server for server in reversed(list(servers))}
        shared = ambiguous(declared.values())
        mask = Redactor(configured_secrets(environ)).by_value_and_shape
        self._servers = [
            ToolServer(server, data=data, limits=limits, environ=environ, shared=shared, mask=mask)
            for server in reversed(declared.values())
        ]
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        await self._stack.enter_async_context(in_background(self._keep()))
        return self

    async def __aexit__(self, *_: object) -> None:
        for server in self._servers:
            server.close()
        await self._stack.aclose()

    async def settle(self, seconds: float) -> None:
        """Wait until every server has been tried once, so long at most: before that the first listing is not whole."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                for server in self._servers:
                    await server.tried.wait()

    def tools(self) -> Sequence[Tool]:
        """List the tools of all servers, in the order of the servers. One that is down keeps its last listing."""
        found: dict[str, Tool] = {}
        for server in self._servers:
            for name, tool in server.listing.tools.items():
                found.setdefault(name, tool)
        return tuple(found.values())

    async def call(
        self,
        name: str,
        arguments_json: str,
        *,
        on_progress: OnProgress | None = None,
        schema_hash: str | None = None,
    ) -> ToolResult:
        """Call a tool. It is sent once, or not at all.

        Args:
            name: The tool's.
            arguments_json: Its arguments, as a model wrote them.
            on_progress: Called with whatever the tool says of its progress.
            schema_hash: That of the tool when the call was decided.

        Returns:
            The tool's answer, which may be that it failed.

        Raises:
            UnknownTool: There is none of this name.
            SchemaDrift: It is no longer what it was.
            InvalidArguments: They are not what its schema asks for.
            ToolFailed: No answer; it says whether the call may have run.
        """
        server = self._server(name)
        return await server.call(name, arguments_json, on_progress=on_progress, schema_hash=schema_hash)

    def health(self) -> list[dict[str, Any]]:
        """How each server is doing, for `/status` and `/_monitor`."""
        return [server.health() for server in self._servers]

    def _server(self, name: str) -> ToolServer:
        """Find who has a tool; before its first listing a server may have any that begins with its name."""
        for server in self._servers:
            if name in server.listing.tools:
                return server
        for server in self._servers:
            if name.startswith(f"{server.declaration.full_name}."):
                return server
        raise UnknownTool(name)

    async def _keep(self) -> None:
        async with asyncio.TaskGroup() as group:
            for server in self._servers:
                group.create_task(server.keep())
