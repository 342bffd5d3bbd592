"""What the demo's script does off the story's path, for those who play with it."""

import json

import pytest

from tiny_harness_engine.models.port import ModelMessage, ModelReply, ModelRequest, ToolCall
from tiny_harness_engine.models.script import DEMO, read_script
from tiny_harness_engine.models.scripted import ScriptedModel

SHOP = "# Skills\n\n- refunds: How a refund is made at the shop. Use it when something was wrong with an order.\n"
PAYS = "79.00 EUR may be paid back for order A-17."
NOTE = f"Sub-task t-1 is COMPLETED.\n<result>\nWhat arrives broken is paid back within 30 days: {PAYS}\n</result>"
ASKED = 'The task\'s data: {"output": "to the voucher"}'


async def reply(*said: str, system: str = SHOP, result: tuple[str, str, bool] | None = None) -> ModelReply:
    """Ask after what the user said; or after the result of a tool: its name, its text, whether it failed."""
    messages = [ModelMessage("user", text, f"m{number}") for number, text in enumerate(said)]
    if result is not None:
        name, text, failed = result
        messages.append(ModelMessage("assistant", "", "a", (ToolCall("c", name, "{}"),)))
        messages.append(ModelMessage("tool", text, call_id="c", is_error=failed))
    script = read_script(DEMO)
    quick = script.model_copy(update={"stream": script.stream.model_copy(update={"chunk_delay_s": 0.0})})
    request = ModelRequest(1, 1 if result is None else 2, 1, messages, system=system)
    return await ScriptedModel(quick, DEMO.name, "scripted").reply(request, lambda _text: None)


def called(answer: ModelReply) -> list[str]:
    return [f"{call.name} {json.dumps(json.loads(call.arguments), sort_keys=True)}" for call in answer.tool_calls]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (["My kettle is broken, order A-17.", "card"], "as soon as the rules have been looked up"),
        (["My kettle is broken, order A-17.", NOTE], "Where shall the money go"),
        (["order C-30", NOTE.replace(PAYS, "nothing may be paid back for order C-30.")], "I paid nothing back."),
        (["order A-17", "Sub-task t-1 is FAILED.\n<result>\nno model\n</result>"], "I paid nothing back. no model"),
        (["Do you take a card?"], "You said: Do you take a card?"),
        (["yes"], "You said: yes"),
        (["Hello"], "support desk"),
    ],
)
async def test_words_alone(said: list[str], expected: str) -> None:
    answer = await reply(*said)
    assert expected in answer.text
    assert answer.tool_calls == ()


async def test_an_order_is_only_looked_up_where_the_shop_is() -> None:
    assert called(await reply("order A-17"))[1:] == ['support/orders.look_up {"order": "A-17"}']
    assert "You said" in (await reply("order A-17", system="")).text


@pytest.mark.parametrize("said", [["order A-17", "to my voucher", NOTE], ["order A-17", NOTE, "Voucher!"]])
async def test_money_goes_where_the_customer_wants_it_whatever_comes_first(said: list[str]) -> None:
    refund = 'support/orders.refund {"amount": 79.0, "order": "a-17", "to": "voucher"}'
    assert called(await reply(*said))[-1].lower() == refund


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (("support/orders.look_up", "There is no order 'Z-9'.", True), "I cannot find order Z-9"),
        (("support/orders.refund", "It was refused by a person. no", True), "I was not allowed to pay it back"),
        (("support/orders.refund", "its server is down", True), "could not be paid back: its server is down"),
    ],
)
async def test_what_goes_wrong_is_said(result: tuple[str, str, bool], expected: str) -> None:
    assert expected in (await reply("order Z-9", result=result)).text


@pytest.mark.parametrize(
    ("said", "call"),
    [
        ("Yes, it is in the books.", "complete_step"),
        ("No, it is not.", "support/orders.refund"),
    ],
)
async def test_a_refund_in_doubt_is_made_only_if_somebody_says_that_it_was_not(said: str, call: str) -> None:
    answer = await reply("order A-17", "voucher", NOTE, said, system=SHOP + ASKED)
    assert [each.name for each in answer.tool_calls] == [call]


@pytest.mark.parametrize(("age", "expected"), [("9", "may be paid back"), ("31", "nothing may be paid back")])
async def test_the_sub_task_says_what_the_rules_say(age: str, expected: str) -> None:
    goal = "Do the shop's rules let us pay back order A-17, an electric kettle for 79.00 EUR,"
    brief = f"<goal>\n{goal} arrived {age} days ago and broken?\n</goal>"
    assert called(await reply(brief)) == ['support/policy.look_up {"topic": "broken on arrival"}']
    told = await reply(brief, result=("support/policy.look_up", "What arrives broken ...", False))
    assert expected in told.text
    failed = await reply(brief, result=("support/policy.look_up", "its server is down", True))
    assert "cannot be read" in failed.text
