"""What a model call costs, by the prices of the configuration. Pure; decimal numbers throughout."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Final, Protocol

from tiny_harness_engine.models.port import ModelUsage

PER_TOKENS: Final = 1_000_000
"""Prices are for this many tokens."""


class Price(Protocol):
    """A model's prices, per million tokens, in whatever money the operator counts in."""

    @property
    def input(self) -> Decimal:
        """Of input that the provider had to read."""
        ...

    @property
    def cached_input(self) -> Decimal | None:
        """Of input that its cache held; `None`: the same."""
        ...

    @property
    def output(self) -> Decimal:
        """Of output, thinking included."""
        ...


Prices = Mapping[str, Price]
"""By model, as the configuration names it."""


def cost(usage: ModelUsage, price: Price) -> Decimal:
    """Say what a call cost. Where more of the input was cached than there was, all of it was."""
    cached = min(usage.cached_tokens, usage.input_tokens)
    cached_price = price.input if price.cached_input is None else price.cached_input
    money = (
        (usage.input_tokens - cached) * price.input + cached * cached_price + usage.output_tokens * price.output
    ) / PER_TOKENS
    return money.normalize() + 0  # without trailing zeros, and without an exponent where there need be none
