"""Names and ids on the wire."""

import re

import pytest

from tiny_harness_engine.models import ModelMessage, ModelRequest, ToolCall, ToolSpec
from tiny_harness_engine.models.wire_names import WireNames, wire_id


def _names(*offered: str, told: tuple[str, ...] = ()) -> WireNames:
    calls = tuple(ToolCall("c", name, "{}") for name in told)
    talk = [ModelMessage("assistant", "", tool_calls=calls)]
    return WireNames(ModelRequest(1, 1, 1, talk, tools=[ToolSpec(name, "", {}) for name in offered]))


ODD = (
    "orders/main.lookup",
    "create_plan",
    "orders/main_lookup",
    "orders_main_lookup",
    "",
    "名前",
    "ナマエ",
    "x" * 65,
    "x" * 66,
    "a b\n",
    "t_0123456789",
    "\ud800",
)


def test_every_name_is_taken_and_leads_back_to_its_tool() -> None:
    names = _names(*ODD)
    wires = [names.wire(name) for name in ODD]
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", wire) for wire in wires)
    assert [names.ours(wire) for wire in wires] == list(ODD)


def test_a_name_stays_readable() -> None:
    names = _names("orders/main.lookup", "create_plan")
    assert [names.wire(name) for name in ("orders/main.lookup", "create_plan")] == ["orders_main_lookup", "create_plan"]


def test_a_tool_that_is_gone_keeps_its_name_in_what_was_said() -> None:
    names = _names("create_plan", told=("orders/main.lookup",))
    assert names.ours(names.wire("orders/main.lookup")) == "orders/main.lookup"


def test_no_tool_can_be_named_like_another_with_its_hash() -> None:
    hashed = _names("a/b", "a.b").wire("a/b")
    names = _names("a/b", "a.b", hashed)
    assert names.wire(hashed) != names.wire("a/b") == hashed


def test_a_name_does_not_depend_on_the_order_of_the_tools() -> None:
    assert _names(*ODD).wire("a b\n") == _names(*reversed(ODD)).wire("a b\n")


def test_a_name_that_nobody_offered_stays() -> None:
    assert _names("a").ours("b") == "b"


@pytest.mark.parametrize("call_id", ["call_1", "toolu_01D7FLrfh4GYq7yT1ULFeyMV", "call-1-2-3"])
def test_a_good_id_stays(call_id: str) -> None:
    assert wire_id(call_id) == call_id


@pytest.mark.parametrize("call_id", ["", "functions.lookup:0", "c" * 41, "ü"])
def test_another_id_becomes_a_good_one_always_the_same(call_id: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,40}", wire_id(call_id))
    assert wire_id(call_id) == wire_id(call_id) != wire_id(call_id + "x")
