"""A tool that must not be called twice, as an MCP server over stdio: `python3 bookings.py FILE`.

Each call writes a line, as many a real system would: it does not notice a second time.
"""

import asyncio
import os
import sys
from typing import Final

import mcp_types as types
from mcp.server import MCPServer

CONFIRMATION_S: Final = 0.4
"""Between what is done and the word of it: whoever dies in between does not hear it."""

server = MCPServer("bookings", version="1.0", log_level="WARNING")


@server.tool(annotations=types.ToolAnnotations(destructive_hint=True))
async def book(what: str) -> str:
    """Book something. Each call books."""
    _write(f"{what}\n")
    await asyncio.sleep(CONFIRMATION_S)
    return f"Booked {what}."


def _write(line: str) -> None:
    with open(sys.argv[1], "a") as ledger:
        ledger.write(line)
        ledger.flush()
        os.fsync(ledger.fileno())


if __name__ == "__main__":
    server.run("stdio")
