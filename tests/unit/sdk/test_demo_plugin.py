"""The demo's plugin loads whole, and its limit on refunds is one."""

from typing import Any

import pytest

from tiny_harness.demo import PLUGIN
from tiny_harness.hooks.contexts import TaskRef, ToolContext
from tiny_harness.plugins import load_plugin


def test_every_part_of_the_plugin_is_loaded() -> None:
    _, report = load_plugin(PLUGIN)
    assert [(part.kind, part.name, part.state) for part in report.components] == [
        ("executor", "support/large-refunds", "loaded"),
        ("mcp", "orders", "loaded"),
        ("mcp", "policy", "loaded"),
        ("skill", "refunds", "loaded"),
        ("system prompt", "systemprompt.md", "loaded"),
    ]


@pytest.mark.parametrize(
    ("tool", "arguments", "is_asked"),
    [
        ("support/orders.refund", '{"order": "A-17", "amount": 50.01, "to": "card"}', True),
        ("support/orders.refund", '{"order": "A-17", "amount": 50, "to": "card"}', False),
        ("support/orders.refund", '{"order": "A-17", "amount": NaN, "to": "card"}', True),
        ("support/orders.refund", '{"order": "A-17"}', True),
        ("support/orders.refund", "[79]", True),
        ("support/orders.refund", "79", True),
        ("support/orders.look_up", '{"order": "A-17", "amount": 79}', False),
    ],
)
async def test_a_person_is_asked_for_refunds_above_the_limit_or_without_an_amount(
    tool: str, arguments: str, is_asked: bool
) -> None:
    plugin, _ = load_plugin(PLUGIN)
    assert plugin is not None
    [guard] = plugin.executors
    context = ToolContext(
        operation="tool.invoked",
        phase="pre",
        task=TaskRef(task_id="t", context_id="c", state="TASK_STATE_WORKING"),
        correlation_id="1",
        turn=1,
        step=1,
        call_id="c",
        tool=tool,
        arguments=arguments,
    )
    patch: Any = await guard.call(context)
    assert bool(patch and patch["ask"]) is is_asked
