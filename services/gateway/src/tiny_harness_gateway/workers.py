"""The workers' MCP endpoint: any agent that speaks MCP can take supervised tasks (DESIGN: supervision).

It stands behind the gateway's own authentication. Importing this module imports the `mcp` SDK, which takes its time:
only the first call does.
"""

import json
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
from pydantic import ValidationError

from tiny_harness._version import __version__
from tiny_harness.contracts import Sender
from tiny_harness.errors import HarnessError
from tiny_harness_gateway.auth import CALLER
from tiny_harness_gateway.worker_tools import INSTRUCTIONS, TOOLS, WorkerTools

MAX_BODY_BYTES: Final = 1_500_000


def session_manager(tools: WorkerTools) -> StreamableHTTPSessionManager:
    """Make the endpoint, without sessions: any gateway answers any call."""

    async def list_tools(_: ServerRequestContext[Any], __: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=[_tool(name) for name in TOOLS])

    async def call_tool(context: ServerRequestContext[Any], params: CallToolRequestParams) -> CallToolResult:
        caller: Sender | None = context.request.scope[CALLER] if context.request else None
        model = TOOLS.get(params.name)
        if caller is None or model is None:
            return _refusal(f"There is no tool {params.name}.")
        try:
            told = await tools.call(caller, model.model_validate(params.arguments or {}))
            return CallToolResult(content=[TextContent(type="text", text=told.text)], structured_content=told.data)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            return _refusal(f"{'.'.join(map(str, first['loc'])) or 'arguments'}: {first['msg']}")
        except HarnessError as error:
            return _refusal(str(error))

    server: Server[Any] = Server(
        "tiny-harness",
        version=__version__,
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )
    # The guard has checked the Host already: the SDK's own check knows localhost only.
    return StreamableHTTPSessionManager(
        server, json_response=True, stateless=True, max_request_body_size=MAX_BODY_BYTES
    )


def _tool(name: str) -> Tool:
    model = TOOLS[name]
    schema = model.model_json_schema()
    description = " ".join((schema.pop("description", "") or "").split())
    return Tool(name=name, description=description, input_schema=json.loads(json.dumps(schema)))


def _refusal(text: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=text)], is_error=True)
