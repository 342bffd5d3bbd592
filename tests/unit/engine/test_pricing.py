"""What a model call costs."""

import random
from dataclasses import dataclass
from decimal import Decimal

import pytest

from tiny_harness_engine.core.pricing import cost
from tiny_harness_engine.models.port import ModelUsage


@dataclass(frozen=True)
class Price:
    input: Decimal
    output: Decimal
    cached_input: Decimal | None = None


PRICE = Price(Decimal("2.50"), Decimal(10), Decimal("0.25"))


@pytest.mark.parametrize(
    ("usage", "price", "money"),
    [
        (ModelUsage(), PRICE, "0"),
        (ModelUsage(1_000_000, 0), PRICE, "2.5"),
        (ModelUsage(0, 1_000_000), PRICE, "10"),
        (ModelUsage(1_000_000, 0, 1_000_000), PRICE, "0.25"),
        (ModelUsage(1_000, 100, 600), PRICE, "0.00215"),
        (ModelUsage(1_000, 100, 600), Price(Decimal("2.50"), Decimal(10)), "0.0035"),
        (ModelUsage(1_000, 0, 5_000), PRICE, "0.00025"),
        (ModelUsage(1_000, 1_000), Price(Decimal(0), Decimal(0)), "0"),
        (ModelUsage(1, 0), Price(Decimal("0.01"), Decimal(0)), "0.00000001"),
        (ModelUsage(1_000_000_000_000, 0), PRICE, "2500000"),
    ],
    ids=str,
)
def test_input_cached_input_and_output_have_their_own_prices(usage: ModelUsage, price: Price, money: str) -> None:
    assert f"{cost(usage, price):f}" == money


@pytest.mark.parametrize("seed", range(20))
def test_no_cent_is_lost_over_many_calls(seed: int) -> None:
    chance = random.Random(seed)
    calls = [ModelUsage(chance.randint(0, 99_999), chance.randint(0, 9_999), 0) for _ in range(300)]
    whole = ModelUsage(sum(call.input_tokens for call in calls), sum(call.output_tokens for call in calls))
    assert sum((cost(call, PRICE) for call in calls), Decimal(0)) == cost(whole, PRICE)


def test_a_cache_never_makes_a_call_dearer_or_its_cost_negative() -> None:
    for cached in (0, 1, 999, 1_000, 1_001, 10**9):
        assert 0 <= cost(ModelUsage(1_000, 0, cached), PRICE) <= cost(ModelUsage(1_000, 0), PRICE)
