"""The shop's orders, as an MCP server over stdio: `python -m tiny_harness.demo.orders`.

Refunds are lines of a file, one each time that it is told to: like many a real system it does not notice a second
time. That no refund is made twice is up to whoever calls it.
"""

import os
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import mcp_types as types
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from tiny_harness.demo.plugin_folder import LEDGER


class Order(NamedTuple):
    """What somebody bought."""

    what: str
    price: float
    """EUR."""
    age: int
    """Days since it arrived."""


ORDERS: Final = {
    "A-17": Order("an electric kettle", 79.00, 9),
    "B-4": Order("a mug", 12.50, 3),
    "C-30": Order("a toaster", 45.00, 40),
}

WAYS: Final = ("card", "voucher")

Number = Annotated[str, Field(description="The order's number, such as A-17.")]

server = MCPServer("orders", version="1.0", log_level="WARNING")


@server.tool(annotations=types.ToolAnnotations(read_only_hint=True))
def look_up(order: Number) -> str:
    """Look at an order: what was bought, for how much, and when it arrived."""
    found = _find(order)
    return f"Order {order}: {found.what}, {found.price:.2f} EUR, arrived {found.age} days ago."


@server.tool(annotations=types.ToolAnnotations(destructive_hint=True))
def refund(
    order: Number,
    amount: Annotated[float, Field(gt=0, description="EUR, at most the order's price.")],
    to: Annotated[str, Field(description="Where the money goes: `card` or `voucher`.")],
) -> str:
    """Pay money back. Each call pays."""
    to = to.lower()
    if to not in WAYS:
        raise ToolError(f"Nothing was paid: money goes to one of {', '.join(WAYS)}.")
    if amount > _find(order).price:
        raise ToolError(f"Nothing was paid: order {order} cost less than {amount:.2f} EUR.")
    with (Path(os.environ.get("PLUGIN_DATA", ".")) / LEDGER).open("a") as ledger:
        ledger.write(f"{order} {amount:.2f} {to}\n")
        ledger.flush()
        os.fsync(ledger.fileno())
    return f"Paid back: {amount:.2f} EUR for order {order} to the {to}."


def _find(order: str) -> Order:
    if order not in ORDERS:
        raise ToolError(f"There is no order {order!r:.50}. There are {', '.join(ORDERS)}.")
    return ORDERS[order]


if __name__ == "__main__":
    server.run("stdio")
