"""With no effort set a request is, byte for byte, a golden one; with one set, only the effort is added.

The plain bodies of OpenAI's APIs are those of the first version, which knew neither tools nor system text.
"""

import json
from pathlib import Path
from typing import Any, Final

import pytest

from tiny_harness.settings import Effort
from tiny_harness_engine.models import ModelMessage, ModelRequest, ToolCall, ToolSpec

GOLDEN: Final = Path(__file__).parents[2] / "contract/golden/models"
EFFORTS: Final = {
    "/v1/responses": {"reasoning": {"effort": "low"}},
    "/v1/chat/completions": {"reasoning_effort": "low"},
    "/v1/messages": {"output_config": {"effort": "low"}},
}
CALLS = (ToolCall("call_1", "orders/main.lookup", '{"order": "A-17"}'), ToolCall("call_2", "create_plan", "{}"))
REQUESTS: Final = {
    "plain": ModelRequest(
        turn=2,
        step=1,
        attempt=1,
        messages=(
            ModelMessage("user", "good morning ☕", "m-1"),
            ModelMessage("assistant", "hello"),
            ModelMessage("user", 'a "quoted" word'),
        ),
    ),
    "tools": ModelRequest(
        turn=1,
        step=2,
        attempt=1,
        messages=(
            ModelMessage("user", "where is A-17?", "m-1"),
            ModelMessage("assistant", "I look.", tool_calls=CALLS),
            ModelMessage("tool", "on its way", call_id="call_1"),
            ModelMessage("tool", "it had no steps", call_id="call_2", is_error=True),
        ),
        system="You are the clerk of a shop.",
        tools=(
            ToolSpec(
                "orders/main.lookup",
                "Finds an order.",
                {"type": "object", "properties": {"order": {"type": "string"}}, "required": ["order"]},
            ),
            ToolSpec("create_plan", "Makes a plan.", {"type": "object"}),
        ),
    ),
}


def _golden(wire: Any, case: str) -> bytes:
    return (GOLDEN / f"{wire.path.removeprefix('/v1/').replace('/', '-')}-{case}.json").read_bytes()


async def _sent(wire: Any, url: str, case: str, effort: Effort | None = None, **section: Any) -> dict[str, Any]:
    asked = REQUESTS[case]
    async with wire.model(url, **section) as model:
        request = ModelRequest(
            asked.turn, asked.step, 1, asked.messages, effort, system=asked.system, tools=asked.tools
        )
        await model.reply(request, lambda _: None)
    return await wire.last_request(url)


@pytest.mark.parametrize("case", REQUESTS)
async def test_without_effort_the_body_is_the_golden_one_byte_for_byte(wire: Any, url: str, case: str) -> None:
    assert (await _sent(wire, url, case))["raw"].encode() == _golden(wire, case)


@pytest.mark.parametrize("case", REQUESTS)
def test_no_golden_body_says_anything_of_reasoning(wire: Any, case: str) -> None:
    assert not [word for word in (b"reasoning", b"effort", b"thinking") if word in _golden(wire, case)]


@pytest.mark.parametrize("case", REQUESTS)
async def test_an_effort_adds_itself_and_nothing_else(wire: Any, url: str, case: str) -> None:
    sent = await _sent(wire, url, case, "low")
    assert sent["body"] == json.loads(_golden(wire, case)) | EFFORTS[wire.path]


async def test_a_bound_is_sent_when_it_is_set(wire: Any, url: str) -> None:
    names = {"/v1/responses": "max_output_tokens", "/v1/chat/completions": "max_completion_tokens"}
    sent = await _sent(wire, url, "plain", max_output_tokens=50)
    assert sent["body"] == json.loads(_golden(wire, "plain")) | {names.get(wire.path, "max_tokens"): 50}
