"""The table of hook points."""

from typing import get_args

import pytest

from tiny_harness.errors import RegistryError
from tiny_harness.hooks import OPERATIONS, parse_point, point_names
from tiny_harness.hooks.contexts import HookContext, ObservedContext, Phase

UNTOUCHABLE = set(HookContext.model_fields)
"""Task, sender, roles, ids: what no reply may replace."""


@pytest.mark.parametrize("point", point_names())
def test_every_point_can_be_named_and_read_back(point: str) -> None:
    operation, phase = parse_point(point)
    assert f"{operation}.{phase}" == point
    assert phase in OPERATIONS[operation].replaces


@pytest.mark.parametrize(
    "point",
    [
        *("", ".", "in", "command.invoked", "command.invoked.", "command.invoked.IN", "command.invoked.in ", "wat.pre"),
        *("task.created.in", "state.changed.pre", "context.created.pre", ".command.invoked.in", "llm.invoked.in.in"),
    ],
)
def test_a_point_that_does_not_exist_is_refused(point: str) -> None:
    with pytest.raises(RegistryError):
        parse_point(point)


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_reply_may_only_replace_fields_of_its_own_context_and_never_who_or_where(name: str) -> None:
    operation = OPERATIONS[name]
    for fields in operation.replaces.values():
        assert fields <= set(operation.context.model_fields) - UNTOUCHABLE


@pytest.mark.parametrize("name", OPERATIONS)
def test_phases_stand_in_the_order_in_which_they_run(name: str) -> None:
    order: tuple[str, ...] = get_args(Phase)
    assert list(OPERATIONS[name].replaces) == sorted(OPERATIONS[name].replaces, key=order.index)


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_body_sets_the_result_and_nothing_else(name: str) -> None:
    assert OPERATIONS[name].replaces.get("in", frozenset({"result"})) == {"result"}


@pytest.mark.parametrize("name", [name for name, operation in OPERATIONS.items() if operation.is_observed])
def test_who_watches_changes_nothing(name: str) -> None:
    operation = OPERATIONS[name]
    assert operation.replaces == {"post": frozenset()}
    assert not operation.may_abort
    assert operation.context is ObservedContext


def test_a_command_can_be_refused_and_changed_in_all_phases() -> None:
    operation = OPERATIONS["command.invoked"]
    assert operation.may_abort
    assert operation.replaces == {"pre": {"arguments"}, "in": {"result"}, "post": {"result"}}
