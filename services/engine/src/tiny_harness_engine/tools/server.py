"""Keeps one server running: connects, lists, connects again. While it is down its calls fail at once."""

import asyncio
import logging
import os
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

import mcp_types as types
from mcp import MCPError
from pydantic import ValidationError

from tiny_harness.errors import ConfigError, HarnessError, SchemaDrift, ToolFailed, UnknownTool
from tiny_harness.plugins.servers import HttpServer, Server
from tiny_harness_engine.tools.arguments import read_arguments
from tiny_harness_engine.tools.connection import Connection, OnProgress, connect
from tiny_harness_engine.tools.credentials import secrets_of
from tiny_harness_engine.tools.result import ToolResult
from tiny_harness_engine.tools.tool import Listing, Tool
from tiny_harness_engine.tools.words import one_line

ServerState = Literal["starting", "up", "down"]

LIST_S: Final = 10.0
"""For a listing, once the session stands."""
PROBE_S: Final = 5.0
"""For a listing, to find out whether a server that missed a deadline is there at all."""
FIRST_PAUSE_S: Final = 0.5
LAST_PAUSE_S: Final = 30.0
STEADY_S: Final = 10.0
"""A connection that lasted this long was a good one: the next pause is short again."""
MAX_REASON_CHARS: Final = 500

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Limits:
    """How long things may take, in seconds."""

    call_s: float = 60.0
    """A call, from its sending to its answer."""
    start_s: float = 30.0
    """A server, from its start to its listing."""
    probe_s: float = 60.0
    """Between two looks at a server over HTTP that nobody calls."""


DEFAULT_LIMITS: Final = Limits()


@dataclass(slots=True)
class _Counts:
    calls: int = 0
    failures: int = 0
    restarts: int = 0
    running: int = 0


@dataclass(slots=True)
class _News:
    """What the keeper is to look at."""

    bell: asyncio.Event = field(default_factory=asyncio.Event)
    is_changed: bool = False
    is_suspect: bool = False


class ToolServer:
    """One server and its tools."""

    def __init__(
        self,
        server: Server,
        *,
        data: Path,
        limits: Limits,
        environ: Mapping[str, str] = os.environ,
        shared: frozenset[str] = frozenset(),
        mask: Callable[[str], str] = str,
    ) -> None:
        """Start nothing yet.

        Args:
            server: Which, and how it is reached.
            data: Where plugins keep their data.
            limits: How long things may take.
            environ: Where credentials come from.
            shared: Names of credentials that could be meant for another server as well.
            mask: Masks secrets in what a server says of its end.
        """
        self.declaration: Final = server
        self.listing = Listing()
        """The last one there was: a server that goes down takes no tool away."""
        self._data = data
        self._limits = limits
        self._environ = environ
        self._shared = shared
        self._mask = mask
        self._state: ServerState = "starting"
        self._reason = "it is starting"
        self._connection: Connection | None = None
        self._counts = _Counts()
        self._news = _News()
        self._is_closing = False
        self._is_current = asyncio.Event()
        self._is_current.set()
        self.tried: Final = asyncio.Event()
        """It has been tried once, with whatever outcome."""

    async def keep(self) -> None:
        """Keep it connected, until `close` and then cancelled."""
        pause = FIRST_PAUSE_S
        clock = asyncio.get_running_loop().time
        while not self._is_closing:
            began = clock()
            try:
                await self._serve()
            except Exception as error:  # noqa: BLE001 - a stranger's server and a library's client: any is its end
                self._went_down(_reason(error))
            if self._is_closing:
                return
            if clock() - began >= STEADY_S:
                pause = FIRST_PAUSE_S
            await asyncio.sleep(pause * random.uniform(0.75, 1.25))
            pause = min(pause * 2, LAST_PAUSE_S)
            self._counts.restarts += 1

    def close(self) -> None:
        """Connect no more. A cancellation alone can get lost while a connection is being taken down."""
        self._is_closing = True

    async def call(
        self, name: str, arguments: str, *, on_progress: OnProgress | None, schema_hash: str | None
    ) -> ToolResult:
        """Call one of its tools, as `ToolHub.call` says."""
        tool = await self._current(name)
        if schema_hash is not None and tool.schema_hash != schema_hash:
            raise SchemaDrift(name)
        document = read_arguments(name, arguments, tool.arguments)
        connection = self._connection
        self._counts.calls += 1
        if connection is None:
            self._counts.failures += 1
            raise self._unreachable(name)
        self._counts.running += 1
        try:
            return await connection.call(tool, document, self._limits.call_s, on_progress)
        except ToolFailed as failure:
            self._counts.failures += 1
            failure.reason = self._mask(failure.reason)
            log.warning("%s", failure)
            if connection.ended and self._connection is connection:
                self._went_down(connection.ended)  # whoever hears of this failure must not see it up
            self._tell(is_suspect=True)
            raise
        finally:
            self._counts.running -= 1
            if self._news.is_suspect:
                self._news.bell.set()  # it may have waited for the calls that ran

    def health(self) -> dict[str, Any]:
        """How it is doing, as a JSON document without arguments, results or secrets."""
        return {
            "name": self.declaration.full_name,
            "plugin": self.declaration.plugin,
            "transport": "http" if isinstance(self.declaration, HttpServer) else "stdio",
            "state": self._state,
            "reason": self._reason,
            "tools": len(self.listing.tools),
            "left_out": list(self.listing.left_out),
            "calls": self._counts.calls,
            "running": self._counts.running,
            "failures": self._counts.failures,
            "restarts": self._counts.restarts,
        }

    async def _current(self, name: str) -> Tool:
        """Find a tool in a listing that is not known to be old. A first start is waited for: it is bounded itself."""
        await self.tried.wait()
        try:
            async with asyncio.timeout(LIST_S):
                await self._is_current.wait()
        except TimeoutError:
            reason = "its server's listing has changed and cannot be read"
            raise ToolFailed(name, reason, may_have_run=False, transient=True) from None
        tool = self.listing.tools.get(name)
        if tool is not None:
            return tool
        if self._connection is None:
            raise self._unreachable(name)
        raise UnknownTool(name)

    def _unreachable(self, name: str) -> ToolFailed:
        return ToolFailed(name, f"its server is {self._state}: {self._reason}", may_have_run=False, transient=True)

    async def _serve(self) -> None:
        """Connect, and stay until the connection is no good."""
        secrets = secrets_of(self.declaration, self._environ, self._shared)
        self._news = _News()
        async with (
            asyncio.timeout(self._limits.start_s) as starting,
            connect(
                self.declaration,
                data=self._data,
                environ=self._environ,
                secrets=secrets,
                on_change=self._changed,
            ) as connection,
        ):
            listing = await connection.listing()
            starting.reschedule(None)
            self._went_up(connection, listing)
            try:
                await self._watch(connection)
            except Exception as error:
                self._went_down(_reason(error))  # at once: taking the session down may take a while
                raise

    async def _watch(self, connection: Connection) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(_raise_at_end(connection))
            while True:
                await self._look(connection)

    async def _look(self, connection: Connection) -> None:
        """Wait for news, and list again."""
        news = self._news
        is_http = isinstance(self.declaration, HttpServer)
        try:
            async with asyncio.timeout(self._limits.probe_s if is_http else None):
                await news.bell.wait()
        except TimeoutError:
            news.is_suspect = True
        news.bell.clear()
        if news.is_suspect and not news.is_changed and self._counts.running:
            return  # a server that does one thing at a time may answer later; the end of the last call rings again
        is_suspect = news.is_suspect
        news.is_changed = news.is_suspect = False
        async with asyncio.timeout(PROBE_S if is_suspect else LIST_S):
            self.listing = await connection.listing()
        if not news.is_changed:
            self._is_current.set()

    def _changed(self) -> None:
        self._is_current.clear()
        self._tell(is_changed=True)

    def _tell(self, *, is_changed: bool = False, is_suspect: bool = False) -> None:
        self._news.is_changed = self._news.is_changed or is_changed
        self._news.is_suspect = self._news.is_suspect or is_suspect
        self._news.bell.set()

    def _went_up(self, connection: Connection, listing: Listing) -> None:
        self.listing = listing
        self._connection = connection
        self._state, self._reason = "up", ""
        self._is_current.set()
        self.tried.set()
        log.info("tool server %s is up with %d tools", self.declaration.full_name, len(listing.tools))
        for line in listing.left_out:
            log.warning("tool server %s: left out the tool %s", self.declaration.full_name, line)

    def _went_down(self, reason: str) -> None:
        reason = self._mask(reason)
        if (self._state, self._reason) != ("down", reason) and not self._is_closing:
            log.warning("tool server %s is down: %s", self.declaration.full_name, reason)
        self._state, self._reason = "down", reason
        self._connection = None  # before the session is taken down: no call may begin on it
        self._is_current.set()
        self.tried.set()


async def _raise_at_end(connection: Connection) -> None:
    await connection.ending()
    raise ConnectionError(connection.ended)


def _reason(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    match error:
        case TimeoutError():
            reason = "it did not answer in time"
        case ConfigError() | HarnessError() | ConnectionError() | OSError():
            reason = str(error)
        case MCPError(code=types.CONNECTION_CLOSED):
            reason = error.message
        case MCPError() | ValidationError():
            reason = f"it does not speak MCP as expected: {error}"
        case _:
            reason = f"{type(error).__name__} {error}"
    return one_line(reason, MAX_REASON_CHARS)
