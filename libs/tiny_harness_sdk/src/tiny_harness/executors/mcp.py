"""The MCP transport: each hook point is a tool, over streamable HTTP without sessions.

Importing this module imports the `mcp` SDK, which takes its time: only a server that is built does.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Final

from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
)
from starlette.types import Receive, Scope, Send

from tiny_harness._version import __version__
from tiny_harness.background import in_background
from tiny_harness.executors.answers import Aborted, Answer, Failed, Invalid, Patched, Unknown
from tiny_harness.executors.guard import CALLER
from tiny_harness.executors.switchboard import Caller, Switchboard
from tiny_harness.hooks.points import OPERATIONS, parse_point
from tiny_harness.hooks.wire import FAILED_WORDS, MAX_BODY_BYTES, TOOL_PREFIX, tool_name

INPUT_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"context": {"type": "object", "description": "The hook's context."}},
    "required": ["context"],
    "additionalProperties": False,
}
OUTPUT_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "patch": {"type": ["object", "null"], "description": "The fields of the context that are replaced."},
        "abort": {"type": "object", "properties": {"reason": {"type": "string"}}, "required": ["reason"]},
    },
}


class Mcp:
    """The endpoint, an ASGI app; answers while `running`."""

    def __init__(self, switchboard: Switchboard) -> None:
        self._switchboard = switchboard
        self._manager: StreamableHTTPSessionManager | None = None

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Answer calls while the block runs."""
        server: Server[Any] = Server(
            self._switchboard.name,
            version=__version__,
            on_list_tools=self._list,
            on_call_tool=self._call,
            get_tool_input_schema=lambda _: None,
        )
        # The guard has checked the Host, or the signature, already: the SDK's own check knows localhost only.
        manager = StreamableHTTPSessionManager(
            server, json_response=True, stateless=True, max_request_body_size=MAX_BODY_BYTES
        )
        is_up, is_over = asyncio.Event(), asyncio.Event()
        async with in_background(self._run(manager, is_up, is_over), is_over.set):
            await is_up.wait()
            yield

    async def _run(self, manager: StreamableHTTPSessionManager, is_up: asyncio.Event, is_over: asyncio.Event) -> None:
        """Hold the SDK's task group, in a task of its own: around a `yield` it would wrap what the block raises."""
        try:
            async with manager.run():
                self._manager = manager
                is_up.set()
                await is_over.wait()
        finally:
            self._manager = None
            is_up.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if self._manager is None:
            raise RuntimeError("the app's lifespan does not run: MCP needs it")
        await self._manager.handle_request(scope, receive, send)

    async def _list(self, _: ServerRequestContext[Any], __: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=[_tool(point) for point in self._switchboard.points])

    async def _call(self, context: ServerRequestContext[Any], params: CallToolRequestParams) -> CallToolResult:
        caller: Caller | None = context.request.scope[CALLER] if context.request else None
        arguments = params.arguments or {}
        if not params.name.startswith(TOOL_PREFIX):
            return _result(Unknown())
        if arguments.keys() != {"context"}:
            return _result(Invalid("arguments"))
        document: Any = arguments["context"]
        point = params.name.removeprefix(TOOL_PREFIX)
        return _result(await self._switchboard.answer(point, document, _delivery(caller, document)))


def _delivery(caller: Caller | None, document: Any) -> Caller | None:
    """Take the delivery from the context: the headers' names one HTTP request, and a call may take several."""
    if caller is None or not isinstance(document, dict):
        return caller
    delivery_id, attempt = document.get("delivery_id"), document.get("attempt")
    return Caller(
        caller.key_id,
        delivery_id if isinstance(delivery_id, str) and delivery_id else caller.delivery_id,
        attempt if isinstance(attempt, int) else caller.attempt,
    )


def _tool(point: str) -> Tool:
    summary = OPERATIONS[parse_point(point)[0]].summary
    return Tool(name=tool_name(point), description=summary, input_schema=INPUT_SCHEMA, output_schema=OUTPUT_SCHEMA)


def _result(answer: Answer) -> CallToolResult:
    """Put an answer into MCP's words; the text is for people who look on."""
    match answer:
        case Patched(patch):
            return CallToolResult(content=_text("done"), structured_content={"patch": patch})
        case Aborted(reason):
            return CallToolResult(content=_text(reason), structured_content={"abort": {"reason": reason}})
        case Failed(correlation_id):
            return _error(f"{FAILED_WORDS}, correlation id {correlation_id}")
        case Invalid(field):
            return _error(f"the arguments are malformed at {field}")
        case Unknown():
            return _error("there is no such tool here")


def _error(words: str) -> CallToolResult:
    return CallToolResult(content=_text(words), is_error=True)


def _text(words: str) -> list[Any]:
    return [TextContent(type="text", text=words)]
