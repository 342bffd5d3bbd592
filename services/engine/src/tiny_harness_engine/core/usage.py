"""What models were used for: per call, per task, per tree; and whether a budget allows another call. Pure."""

from collections.abc import Iterable
from decimal import Decimal
from functools import reduce
from typing import Protocol

from tiny_harness.contracts import Usage
from tiny_harness_engine.core.pricing import Prices, cost
from tiny_harness_engine.models.port import ModelUsage


class Limits(Protocol):
    """What a task and all below it may use before somebody is asked; several limits hold at once."""

    @property
    def tokens(self) -> int | None:
        """Tokens, input and output."""
        ...

    @property
    def cost(self) -> Decimal | None:
        """Money, in that of the prices."""
        ...


def call_usage(model: str, used: ModelUsage, prices: Prices) -> Usage:
    """Count one call. Without a price its cost is not known, which is not the same as nothing."""
    price = prices.get(model)
    return Usage(
        calls=1,
        input_tokens=used.input_tokens,
        output_tokens=used.output_tokens,
        cached_tokens=used.cached_tokens,
        cost=None if price is None else cost(used, price),
        unpriced=(model,) if price is None else (),
    )


def tree_usage(own: Usage, below: Iterable[Usage]) -> Usage:
    """Add up a task and all below it.

    Args:
        own: The task's own calls.
        below: Of each sub-task, its tree's.
    """
    return reduce(Usage.plus, below, own)


def over_budget(spent: Usage, limits: Limits, granted: int) -> str | None:
    """Say why a person has to allow another model call; `None`: go on.

    Args:
        spent: The whole tree's.
        limits: Those of the configuration.
        granted: How many more budgets people have granted: each is as large as the first.
    """
    tokens = spent.input_tokens + spent.output_tokens
    if limits.tokens is not None and tokens >= limits.tokens * (granted + 1):
        return f"{tokens} of {limits.tokens * (granted + 1)} tokens are used"
    if limits.cost is None:
        return None
    if spent.cost is not None and spent.cost >= limits.cost * (granted + 1):
        return f"{spent.cost:f} of {limits.cost * (granted + 1):f} is spent"
    if spent.unpriced and not granted:
        return f"nobody knows what {', '.join(spent.unpriced)} costs: there is no price in the configuration"
    return None
