"""One session with a server, from its handshake to its end: listing, calling, hearing of changes."""

import asyncio
import os
import shutil
import sys
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx2
import mcp_types as types
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost
from mcp.shared.dispatcher import ProgressFnT
from pydantic import TypeAdapter, ValidationError

from tiny_harness._version import __version__
from tiny_harness.background import in_background
from tiny_harness.errors import ToolFailed
from tiny_harness.plugins.servers import HttpServer, Server, StdioServer
from tiny_harness_engine.tools.attempt import ATTEMPT, Attempt
from tiny_harness_engine.tools.credentials import process_environment
from tiny_harness_engine.tools.http import MAX_BODY_BYTES, HttpLink
from tiny_harness_engine.tools.result import ToolResult, read_result
from tiny_harness_engine.tools.stdio import StdioLink, open_stdio
from tiny_harness_engine.tools.tool import MAX_TOOLS, Listing, Tool, read_listing
from tiny_harness_engine.tools.words import one_line

MAX_PAGES: Final = 100
LISTEN_AGAIN_S: Final = 5.0
"""After a stream of changes broke."""
MAX_WORDS: Final = 300

_ANSWER: Final = TypeAdapter[types.CallToolResult | types.InputRequiredResult](
    types.CallToolResult | types.InputRequiredResult
)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a call is, as its tool says."""

    progress: float
    total: float | None
    message: str
    """Empty: it says nothing."""


OnProgress = Callable[[Progress], None]


class Connection:
    """A session that stands."""

    def __init__(self, name: str, client: Client, link: StdioLink | HttpLink, on_change: Callable[[], None]) -> None:
        self._name = name
        self._client = client
        self._link = link
        self._on_change = on_change

    @property
    def ended(self) -> str:
        """Why the transport has ended; empty while it has not, or cannot tell."""
        return self._link.reason if isinstance(self._link, StdioLink) else ""

    async def ending(self) -> None:
        """Wait until the transport has ended. One over HTTP never does: only a request can tell."""
        await (self._link.ended if isinstance(self._link, StdioLink) else asyncio.Event()).wait()

    async def listing(self) -> Listing:
        """Ask for the tools.

        Raises:
            MCPError: The server does not say.
            ValidationError: It answers something else.
        """
        found: list[types.Tool] = []
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            page = await self._client.session.list_tools(params=types.PaginatedRequestParams(cursor=cursor))
            found += page.tools
            cursor = page.next_cursor
            if cursor is None or len(found) > MAX_TOOLS:
                break
        return await asyncio.to_thread(read_listing, self._name, found)  # up to seconds, with hundreds of new ones

    async def call(
        self, tool: Tool, arguments: Mapping[str, Any], deadline_s: float, on_progress: OnProgress | None
    ) -> ToolResult:
        """Call a tool; the server is told when nobody waits any more.

        Raises:
            ToolFailed: There is no answer.
        """
        attempt = Attempt(asyncio.get_running_loop().time() + deadline_s)
        before = ATTEMPT.set(attempt)
        try:
            async with asyncio.timeout(deadline_s):
                answer = await self._send(tool.own_name, arguments, on_progress)
        except TimeoutError:
            raise ToolFailed(tool.name, f"no answer within {deadline_s:g} s", attempt.is_sent) from None
        except ValidationError as error:
            place = ".".join(str(part) for part in error.errors(include_url=False, include_input=False)[0]["loc"])
            return _unreadable(f"its server's answer is no tool result of MCP (at {one_line(place, 100) or 'the top'})")
        except MCPError as error:
            return self._failure(tool, attempt, error)
        finally:
            attempt.is_abandoned = True
            ATTEMPT.reset(before)
        if isinstance(answer, types.InputRequiredResult):
            return _unreadable("its server wants to ask a person something in the middle of the call")
        return read_result(answer, tool.output)

    async def hear(self) -> None:
        """Hear of changes to the listing, as long as the connection stands."""
        tools = self._client.server_capabilities.tools
        if tools is None or not tools.list_changed:
            return
        while True:
            try:
                async with self._client.listen(tools_list_changed=True) as changes:
                    self._on_change()  # whatever changed before the server began to tell
                    async for _ in changes:
                        self._on_change()
            except ListenNotSupportedError:
                return  # an older protocol: the message handler hears
            except (MCPError, SubscriptionLost):
                pass
            await asyncio.sleep(LISTEN_AGAIN_S)

    async def _send(
        self, name: str, arguments: Mapping[str, Any], on_progress: OnProgress | None
    ) -> types.CallToolResult | types.InputRequiredResult:
        # Not `Client.call_tool`: that raises away an answer whose structured content is wrong, and may send twice.
        params = types.CallToolRequestParams(name=name, arguments=dict(arguments))
        request = types.CallToolRequest(params=params)
        callback = None if on_progress is None else _reporter(on_progress)
        return await self._client.session.send_request(request, _ANSWER, progress_callback=callback)

    def _failure(self, tool: Tool, attempt: Attempt, error: MCPError) -> ToolResult:
        """Tell a server's own refusal, which is an answer, from no answer."""
        is_lost = bool(self.ended) or error.code in (types.CONNECTION_CLOSED, types.PARSE_ERROR)
        if (
            error.code == types.HEADER_MISMATCH
        ):  # refused because it goes by another schema; the look after it lists again
            raise ToolFailed(tool.name, "its schema has changed", may_have_run=False, transient=True)
        if not attempt.fault and not is_lost:
            words = one_line(error.message, MAX_WORDS)
            return ToolResult(f"[the server refused the call: {words} (code {error.code})]", is_error=True)
        may_have_run = attempt.is_sent and not attempt.is_refused
        reason = self.ended or attempt.fault or one_line(error.message, MAX_WORDS)
        raise ToolFailed(tool.name, reason, may_have_run, attempt.is_passing)


@asynccontextmanager
async def connect(
    server: Server, *, data: Path, environ: Mapping[str, str], secrets: Mapping[str, str], on_change: Callable[[], None]
) -> AsyncGenerator[Connection]:
    """Hold a session with a server while the block runs.

    Args:
        server: Which.
        data: Where plugins keep their data, a folder each.
        environ: Our environment, of which a process gets the least.
        secrets: The server's credentials.
        on_change: Called when its listing may have changed.

    Raises:
        OSError: Its process cannot be started.
        MCPError: It does not speak MCP.
    """
    async with AsyncExitStack() as stack:
        if isinstance(server, StdioServer):
            link, transport = await _start(stack, server, data, environ, secrets)
        else:
            link, transport = await _reach(stack, server, secrets)

        async def hear(message: Any) -> None:
            if isinstance(message, types.ToolListChangedNotification):
                on_change()

        info = types.Implementation(name="tiny-harness", version=__version__)
        client = Client(transport, cache=None, message_handler=hear, client_info=info)
        try:
            await stack.enter_async_context(client)
        except (MCPError, ExceptionGroup) as error:
            raise ConnectionError(_why(link) or one_line(str(error), MAX_WORDS)) from error
        connection = Connection(server.full_name, client, link, on_change)
        await stack.enter_async_context(in_background(connection.hear()))
        yield connection


async def _start(
    stack: AsyncExitStack, server: StdioServer, data: Path, environ: Mapping[str, str], secrets: Mapping[str, str]
) -> tuple[StdioLink, Any]:
    folder = data / server.plugin
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    launch = server.launch(folder.resolve())
    launch.cwd.mkdir(mode=0o700, parents=True, exist_ok=True)
    env = {**process_environment(environ), **launch.env, **secrets}
    command = shutil.which(launch.command, path=_search_path(env.get("PATH", os.defpath)))
    if command is None:
        raise FileNotFoundError(f"there is no program {launch.command!r:.200} that can be run")
    link, receiver = await stack.enter_async_context(open_stdio(server.full_name, launch, command, env))
    return link, _Pair(receiver, link)


def _search_path(path: str) -> str:
    """Look for programs as in a shell where our virtual environment is active, if we run in one."""
    is_virtual = sys.prefix != sys.base_prefix
    return os.pathsep.join((str(Path(sys.executable).parent), path)) if is_virtual else path


async def _reach(stack: AsyncExitStack, server: HttpServer, secrets: Mapping[str, str]) -> tuple[HttpLink, Any]:
    link = HttpLink(server, secrets)
    http = await stack.enter_async_context(httpx2.AsyncClient(transport=link, trust_env=False, timeout=None))
    return link, streamable_http_client(server.url, http_client=http, max_sse_event_size=MAX_BODY_BYTES)


class _Pair:
    """Two streams, as a transport that MCP's client enters. Who made them closes them."""

    def __init__(self, receiver: Any, link: StdioLink) -> None:
        self._streams = receiver, link

    async def __aenter__(self) -> tuple[Any, StdioLink]:
        return self._streams

    async def __aexit__(self, *_: object) -> None:
        """Nothing is left to do."""


def _reporter(on_progress: OnProgress) -> ProgressFnT:
    async def report(progress: float, total: float | None, message: str | None) -> None:
        on_progress(Progress(progress, total, one_line(message or "", MAX_WORDS)))

    return report


def _unreadable(why: str) -> ToolResult:
    """An answer came: whatever the tool does, it has done."""
    return ToolResult(f"[the tool was called, and may have done its work, but {why}]", is_error=True)


def _why(link: StdioLink | HttpLink) -> str:
    return link.reason if isinstance(link, StdioLink) else link.fault
