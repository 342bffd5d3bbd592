"""The shop's own limit: a person allows a large refund before it is made, whatever the model thinks."""

import json
from typing import Any, Final

from tiny_harness.hooks.contexts import ToolContext

TOOL: Final = "support/orders.refund"
LIMIT: Final = 50.0
"""EUR. Up to this the agent pays by itself."""


async def large_refunds(context: ToolContext) -> dict[str, Any] | None:
    """Have a person asked for every refund above the limit, and for one whose amount cannot be read."""
    if context.tool != TOOL:
        return None
    amount = _amount(context.arguments)
    if amount is None:
        return {"ask": "It does not say how much is to be paid."}
    return None if amount <= LIMIT else {"ask": f"{amount:.2f} EUR is more than {LIMIT:.2f} EUR."}


def _amount(arguments: str) -> float | None:
    try:
        amount = json.loads(arguments)["amount"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return float(amount) if isinstance(amount, int | float) else None
