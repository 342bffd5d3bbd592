"""The shop's rules, as an MCP server over stdio: `python -m tiny_harness.demo.policy`."""

from typing import Annotated, Final

import mcp_types as types
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

RULES: Final = {
    "broken on arrival": "What arrives broken is paid back in full within 30 days, to the card or as a voucher.",
    "changed mind": "What is unused may be sent back within 14 days. Postage is not paid back.",
    "late delivery": "What arrives more than a week late earns a voucher of 5.00 EUR.",
}

server = MCPServer("policy", version="1.0", log_level="WARNING")


@server.tool(annotations=types.ToolAnnotations(read_only_hint=True))
def look_up(topic: Annotated[str, Field(description=f"One of: {', '.join(RULES)}.")]) -> str:
    """Read what the shop's rules say on a topic."""
    if topic not in RULES:
        raise ToolError(f"There is no rule on {topic!r:.50}. There are rules on: {', '.join(RULES)}.")
    return RULES[topic]


if __name__ == "__main__":
    server.run("stdio")
