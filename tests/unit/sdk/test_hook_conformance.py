"""What a conformance run calls services with."""

import pytest

from tiny_harness.hooks.conformance import RULES
from tiny_harness.hooks.conformance.contexts import context, probes
from tiny_harness.hooks.points import OPERATIONS, parse_point, point_names


@pytest.mark.parametrize("point", point_names())
def test_there_is_a_good_call_for_each_hook_point(point: str):
    operation, phase = parse_point(point)
    made = context(point)
    again = OPERATIONS[operation].context.model_validate_json(made.model_dump_json())
    assert again == made
    assert (made.operation, made.phase) == (operation, phase)
    has_result = phase == "post" and "result" in OPERATIONS[operation].replaces[phase]
    assert (getattr(made, "result", None) is not None) == has_result


def test_each_command_is_called_once_at_the_point_of_bodies():
    made = probes(["command.invoked.in", "command.invoked.pre", "no.such.point"], ["a", "b"])
    titles = [probe.title for probe in made]
    assert titles == ["command.invoked.pre", "command.invoked.in /a", "command.invoked.in /b"]
    assert len({probe.context.delivery_id for probe in made}) == 3


@pytest.mark.parametrize("transport", ["jsonrpc", "mcp"])
def test_rules_have_names_of_their_own_and_say_something(transport: str):
    rules = RULES[transport]
    assert len({rule.name for rule in rules}) == len(rules)
    assert all(rule.says.endswith(".") and rule.name.replace("-", "").isalpha() for rule in rules)
