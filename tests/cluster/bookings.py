"""A tool that must not be called twice, as an MCP server over stdio: `python3 bookings.py FILE`.

Each call writes a line, as many a real system would: it does not notice a second time.
"""

import os
import sys

import mcp_types as types
from mcp.server import MCPServer

server = MCPServer("bookings", version="1.0", log_level="WARNING")


@server.tool(annotations=types.ToolAnnotations(destructive_hint=True))
def book(what: str) -> str:
    """Book something. Each call books."""
    with open(sys.argv[1], "a") as ledger:
        ledger.write(f"{what}\n")
        ledger.flush()
        os.fsync(ledger.fileno())
    return f"Booked {what}."


if __name__ == "__main__":
    server.run("stdio")
