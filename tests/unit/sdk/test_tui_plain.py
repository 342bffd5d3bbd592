"""The line mode: lines in, replies out."""

import asyncio
import io
from typing import Any

from tests.unit.sdk.fake_client import FakeClient
from tiny_harness.client import MessageView, Received, Stepped
from tiny_harness.errors import ServerRefused
from tiny_harness.ext.plan import Plan, PlanStep
from tiny_harness.ext.stream import ToolUse
from tiny_harness.ext.task import TaskData
from tiny_harness.states import TaskState
from tiny_harness.tui.plain import Lines


async def talk(client: FakeClient, text: str) -> tuple[int, str]:
    out = io.StringIO()
    async with asyncio.timeout(10):
        return await Lines(client.as_client(), io.StringIO(text), out).run(), out.getvalue()


async def test_each_line_is_a_message_of_one_task() -> None:
    client = FakeClient()
    assert await talk(client, "one\n\n  \ntwo") == (0, "echo: one\necho: two\n")
    assert [task_id for _, task_id in client.sent] == ["t1", "t1"]


async def test_a_task_that_ends_says_so_and_the_next_line_starts_another_in_its_context() -> None:
    client = FakeClient()
    assert await talk(client, "done\nmore\n") == (0, "echo: done\n[Completed]\necho: more\n")
    assert [task_id for _, task_id in client.sent] == ["t1", "t2"]


async def test_a_refused_line_is_told_and_the_next_one_goes_on() -> None:
    client = FakeClient()
    client.fails = [ServerRefused("not\x07 now")]
    assert await talk(client, "one\ntwo\n") == (1, "error: not now\necho: two\n")


async def test_control_characters_are_not_printed() -> None:
    assert await talk(FakeClient(), "a\x1b[31mb\n") == (0, "echo: a[31mb\n")


async def test_a_command_is_a_line_like_any_other_and_a_refused_one_is_told() -> None:
    client = FakeClient()
    assert await talk(client, "/status\n/model x\n/open t1\n") == (
        1,
        "all is well\nerror: not for you\necho: /open t1\n",
    )
    assert [text for text, _ in client.sent] == ["/status", "/model x", "/open t1"]


COMMON: dict[str, Any] = {"task_id": "t1", "context_id": "ctx", "state": TaskState.WORKING}


async def test_a_question_is_printed_with_its_choices_and_a_choice_answers_it() -> None:
    client = FakeClient()
    status, out = await talk(client, "refund\nApprove\n")
    assert (status, client.answers) == (0, [("r1", "approve")])
    assert out.splitlines() == [
        "refund?",
        "[Input required · Waiting for your approval]",
        "[answer: approve | refuse]",
        "it is approve",
    ]


async def test_other_words_to_a_question_are_a_message() -> None:
    client = FakeClient()
    status, out = await talk(client, "refund\nlook again\nwhich\none\n")
    assert (status, client.answers) == (0, [])
    assert [text for text, _ in client.sent] == ["refund", "look again", "which", "one"]
    assert out.splitlines()[-3:] == ["[Input required · Waiting for your answer]", "[answer: one | two]", "echo: one"]


async def test_an_answer_that_comes_too_late_is_told_and_the_question_is_closed() -> None:
    client = FakeClient()
    client.add_task("t1", "Refund", "refund it")
    client.ask("t1", "refund?", "m", "approve", "refuse", request_id="r1")
    out = io.StringIO()
    lines = Lines(client.as_client(), io.StringIO("approve\napprove\n"), out)
    await lines.open("t1")
    client.reply("t1", "done by somebody else", "m")
    async with asyncio.timeout(10):
        assert await lines.run() == 1
    assert out.getvalue().splitlines() == [
        "refund?",
        "[answer: approve | refuse]",
        "error: the question r1 is not open: it was answered, or its turn is over",
        "echo: approve",
    ]


async def test_steps_notes_and_the_plan_are_told_on_the_way() -> None:
    client = FakeClient()
    plan = Plan(steps=(PlanStep(id="a", name="Look", status="active"),))
    uses = (ToolUse(call_id="1", name="shop/orders.look"), ToolUse(call_id="2", name="shop/refund", is_error=True))
    said = MessageView("s1", "agent", "let me see")
    note = MessageView("n1", "note", "Sub-task k is COMPLETED.\n<result>\nall well\n</result>")
    client.on_the_way = [
        Stepped(**COMMON, tool_calls=uses, message=said, data=TaskData(plan=plan)),
        Stepped(**COMMON, tool_calls=uses[:1], data=TaskData(plan=plan)),
        Received(**COMMON, message=note, received_as="queued"),
        Received(**COMMON, message=MessageView("m2", "user", "of another surface"), received_as="queued"),
    ]
    assert await talk(client, "one\n") == (
        0,
        "let me see\n[used orders.look, refund ✗]\n[Plan · 0 of 1 done]\n[▸ Look]\n[used orders.look]\n"
        "[Sub-task k is COMPLETED. all well]\necho: one\n",
    )
