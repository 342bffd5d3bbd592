"""What models were used for, and whether a budget allows another call."""

from dataclasses import dataclass
from decimal import Decimal

import pytest

from tiny_harness.commands.builtin import status
from tiny_harness.contracts import TaskSnapshot, Usage
from tiny_harness.ext.task import TaskText
from tiny_harness.hooks.contexts import CommandContext, TaskRef
from tiny_harness.states import TaskState
from tiny_harness.task_data import task_data
from tiny_harness_engine.core.usage import call_usage, over_budget, tree_usage
from tiny_harness_engine.models.port import ModelUsage


@dataclass(frozen=True)
class Price:
    input: Decimal
    output: Decimal
    cached_input: Decimal | None = None


@dataclass(frozen=True)
class Limits:
    tokens: int | None = None
    cost: Decimal | None = None


PRICES = {"large": Price(Decimal(10), Decimal(20)), "free": Price(Decimal(0), Decimal(0))}
USED = ModelUsage(input_tokens=1_000, output_tokens=100, cached_tokens=10)


def test_a_call_is_counted_with_its_cost() -> None:
    usage = call_usage("large", USED, PRICES)
    assert usage == Usage(calls=1, input_tokens=1_000, output_tokens=100, cached_tokens=10, cost=Decimal("0.012"))


def test_a_model_without_a_price_is_said_so_and_never_costs_zero() -> None:
    usage = call_usage("unknown", USED, PRICES)
    assert (usage.cost, usage.unpriced) == (None, ("unknown",))
    assert "cost" not in usage.shown()
    assert usage.shown()["unpriced"] == ["unknown"]


def test_a_model_that_is_free_costs_zero() -> None:
    assert call_usage("free", USED, PRICES).shown()["cost"] == "0"


def test_a_sum_keeps_what_is_known_and_names_what_is_not() -> None:
    calls = [call_usage(model, USED, PRICES) for model in ("unknown", "large", "other", "large", "unknown")]
    total = tree_usage(calls[0], calls[1:])
    assert (total.calls, total.input_tokens, total.cached_tokens) == (5, 5_000, 50)
    assert (total.cost, total.unpriced) == (Decimal("0.024"), ("other", "unknown"))


def test_sums_do_not_depend_on_their_order() -> None:
    calls = [call_usage(model, USED, PRICES) for model in ("unknown", "large", "free")]
    assert tree_usage(calls[0], calls[1:]) == tree_usage(calls[2], [calls[1], calls[0]])
    assert tree_usage(calls[0], []) == calls[0]


def test_usage_crosses_a_border_and_comes_back_to_the_last_digit() -> None:
    usage = Usage(calls=1, cost=Decimal("0.1234567890123456789"), unpriced=("a",))
    assert Usage.model_validate_json(usage.model_dump_json()) == usage


def test_usage_of_before_there_were_prices_is_read() -> None:
    assert Usage.model_validate({"calls": 2, "input_tokens": 5}).shown() == {
        "calls": 2,
        "input_tokens": 5,
        "output_tokens": 0,
        "cached_tokens": 0,
    }


def test_the_task_extension_shows_money_as_a_decimal_number() -> None:
    usage = Usage(calls=1, cost=Decimal("0.00000001"))
    snapshot = TaskSnapshot(task_id="t", context_id="c", state=TaskState.WORKING, usage=usage)
    assert task_data(snapshot, TaskText())["usage"]["cost"] == "0.00000001"


@pytest.mark.parametrize(
    ("usage", "words"),
    [
        (Usage(calls=2, input_tokens=5), "2 calls, 5 input tokens, 0 output tokens"),
        (Usage(calls=1, cached_tokens=3, cost=Decimal("0.5")), "3 cached tokens, cost 0.5"),
        (Usage(calls=1, unpriced=("a", "b")), "0 output tokens, no price for a, b"),
    ],
    ids=str,
)
async def test_status_says_what_was_used_and_what_has_no_price(usage: Usage, words: str) -> None:
    task = TaskRef(task_id="t", context_id="c", state="TASK_STATE_WORKING", usage=usage.shown())
    asked = CommandContext(
        operation="command.invoked", phase="in", task=task, correlation_id="k", command="status", arguments=""
    )
    [line] = [line for line in (await status(asked)).reply.splitlines() if line.startswith("Usage: ")]
    assert line.endswith(words)


@pytest.mark.parametrize(
    ("spent", "limits", "granted", "goes_on"),
    [
        (Usage(input_tokens=10**12), Limits(), 0, True),
        (Usage(input_tokens=60, output_tokens=39), Limits(tokens=100), 0, True),
        (Usage(input_tokens=60, output_tokens=40), Limits(tokens=100), 0, False),
        (Usage(input_tokens=60, output_tokens=40), Limits(tokens=100), 1, True),
        (Usage(input_tokens=200), Limits(tokens=100), 1, False),
        (Usage(input_tokens=950), Limits(tokens=100), 9, True),
        (Usage(cost=Decimal("0.99")), Limits(cost=Decimal(1)), 0, True),
        (Usage(cost=Decimal(1)), Limits(cost=Decimal(1)), 0, False),
        (Usage(cost=Decimal("1.5")), Limits(cost=Decimal(1)), 1, True),
        (Usage(cost=Decimal(2)), Limits(cost=Decimal(1)), 1, False),
        (Usage(cost=Decimal("0.1"), input_tokens=100), Limits(tokens=100, cost=Decimal(1)), 0, False),
        (Usage(cost=Decimal(2), input_tokens=10), Limits(tokens=100, cost=Decimal(1)), 0, False),
        (Usage(unpriced=("m",)), Limits(cost=Decimal(1)), 0, False),
        (Usage(unpriced=("m",), cost=Decimal(2)), Limits(cost=Decimal(1)), 0, False),
        (Usage(unpriced=("m",)), Limits(cost=Decimal(1)), 1, True),
        (Usage(unpriced=("m",)), Limits(tokens=100), 0, True),
        (Usage(), Limits(tokens=100, cost=Decimal(1)), 0, True),
    ],
    ids=str,
)
def test_a_budget_stops_a_call_when_it_is_used_up(spent: Usage, limits: Limits, granted: int, goes_on: bool) -> None:
    assert (over_budget(spent, limits, granted) is None) == goes_on


def test_a_person_is_told_the_numbers_or_the_model_without_a_price() -> None:
    assert over_budget(Usage(input_tokens=120), Limits(tokens=100), 0) == "120 of 100 tokens are used"
    assert over_budget(Usage(cost=Decimal("2.50")), Limits(cost=Decimal(1)), 1) == "2.50 of 2 is spent"
    assert "what m costs" in (over_budget(Usage(unpriced=("m",)), Limits(cost=Decimal(1)), 0) or "")
