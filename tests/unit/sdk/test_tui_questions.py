"""Questions, tools, plans and notes on the full-screen surface, by keyboard alone."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from textual.pilot import Pilot
from textual.widgets import OptionList, Static

from tests.unit.sdk.fake_client import FakeClient
from tests.unit.sdk.tui_pilot import dimmed, enabled, family, notice, open_app, question, state, texts, until, write
from tiny_harness.client import DeltaText
from tiny_harness.errors import RoleNotPermitted
from tiny_harness.ext.plan import Plan, PlanStep
from tiny_harness.ext.task import TaskData
from tiny_harness.states import TaskState
from tiny_harness.tui.app import HarnessApp
from tiny_harness.tui.composer import Composer
from tiny_harness.tui.conversation import Conversation
from tiny_harness.tui.room import REFUSES

APPROVAL = ("Waiting for your approval\nMay I?", ["approve", "refuse"])


@asynccontextmanager
async def begun() -> AsyncGenerator[tuple[FakeClient, HarnessApp, Pilot[None], str]]:
    """A running turn, and the id of the message that it answers."""
    async with open_app() as (client, app, pilot):
        await write(pilot, "go")
        await until(pilot, lambda: "t1" in client.streams and "Working" in state(app))
        yield client, app, pilot, client.sent[0][0]


@asynccontextmanager
async def asked() -> AsyncGenerator[tuple[FakeClient, HarnessApp, Pilot[None]]]:
    """An open request for an approval."""
    async with begun() as (client, app, pilot, message_id):
        client.ask("t1", "May I?", message_id, "approve", "refuse", request_id="r1")
        await until(pilot, lambda: question(app) == APPROVAL)
        yield client, app, pilot


def pieces(client: FakeClient, message_id: str, step: int, *words: str) -> None:
    for index, text in enumerate(words):
        client.happen("t1", DeltaText(message_id=message_id, turn=1, step=step, attempt=1, index=index, text=text))


async def test_a_request_for_an_approval_is_shown_and_approved_by_keys() -> None:
    async with asked() as (client, app, pilot):
        assert texts(app) == ["go", "May I?"]
        assert "Waiting for your approval" in state(app)
        assert "answer" in enabled(app)
        assert app.query_one(Composer).placeholder == REFUSES
        assert app.focused is app.query_one(Composer), "a question takes no keys by itself"
        await pilot.press("f6", "enter")
        await until(pilot, lambda: question(app) is None)
        assert client.answers == [("r1", "approve")]
        assert app.focused is app.query_one(Composer)
        assert "answer" not in enabled(app) | dimmed(app), "the key is only there when there is something to answer"


async def test_a_call_is_refused_by_the_arrows_or_by_the_word_itself() -> None:
    async with asked() as (client, _app, pilot):
        await pilot.press("f6", "down", "enter")
        await until(pilot, lambda: client.answers == [("r1", "refuse")])
    async with asked() as (client, _app, pilot):
        await write(pilot, " Approve ")
        await until(pilot, lambda: client.answers == [("r1", "approve")])
        assert len(client.sent) == 1, "the word is the answer, not a message"


async def test_other_words_go_to_the_agent_as_a_message() -> None:
    async with asked() as (client, app, pilot):
        await write(pilot, "no, look first")
        await until(pilot, lambda: len(client.sent) == 2)
        await until(pilot, lambda: question(app) is None)
        assert client.answers == []
        assert "no, look first" in texts(app)[-1]


async def test_escape_leaves_the_choices_and_does_not_interrupt() -> None:
    async with asked() as (client, app, pilot):
        await pilot.press("f6")
        assert app.focused is app.query_one("#question-choices", OptionList)
        await pilot.press("escape")
        await until(pilot, lambda: app.focused is app.query_one(Composer))
        assert question(app) == APPROVAL
        assert "Waiting for your approval" in state(app)
        assert client.answers == []


async def test_another_surfaces_answer_closes_the_question_at_once() -> None:
    async with asked() as (client, app, pilot):
        await pilot.press("f6")
        client.change("t1", TaskState.WORKING)
        await until(pilot, lambda: question(app) is None)
        await until(pilot, lambda: app.focused is app.query_one(Composer))
        assert "Working" in state(app)


async def test_an_answer_that_the_harness_refuses_is_told_and_the_question_stays() -> None:
    async with asked() as (client, app, pilot):
        client.fails = [RoleNotPermitted("assignee", "approve")]
        await pilot.press("f6", "enter")
        await until(pilot, lambda: "assignee" in notice(app))
        assert question(app) == APPROVAL


async def test_a_choice_of_the_agents_own_question_is_sent_as_a_message() -> None:
    async with begun() as (client, app, pilot, message_id):
        client.ask("t1", "Which one?", message_id, "the first", "the second")
        await until(pilot, lambda: question(app) is not None)
        assert question(app) == ("Waiting for your answer\nWhich one?", ["the first", "the second"])
        await pilot.press("f6", "down", "enter")
        await until(pilot, lambda: texts(app) == ["go", "Which one?", "the second"])
        await until(pilot, lambda: question(app) is None)
        assert client.answers == []
        assert [task_id for _, task_id in client.sent] == [None, "t1"]


async def test_a_question_without_choices_has_no_key() -> None:
    async with begun() as (client, app, pilot, message_id):
        client.ask("t1", "Which \x1b[31mone?", message_id)
        await until(pilot, lambda: question(app) == ("Waiting for your answer\nWhich [31mone?", []))
        assert "answer" not in enabled(app) | dimmed(app)
        assert not app.query_one("#question-choices").display


async def test_a_question_is_there_again_when_the_task_is_opened_again() -> None:
    async with asked() as (client, app, pilot):
        await pilot.press("f4")
        await until(pilot, lambda: question(app) is None)
        await pilot.press("f5")
        await until(pilot, lambda: bool(app.screen.query("#picker-list")))
        listing = app.screen.query_one("#picker-list", OptionList)
        await until(pilot, lambda: listing.option_count == 1)
        await pilot.press("enter")
        await until(pilot, lambda: question(app) == APPROVAL)
        await pilot.press("f6", "enter")
        await until(pilot, lambda: client.answers == [("r1", "approve")])


async def test_tools_are_one_line_below_what_was_said_before_them() -> None:
    async with begun() as (client, app, pilot, message_id):
        pieces(client, "s1", 1, "let me", " see")
        await until(pilot, lambda: texts(app) == ["go", "let me see"])
        client.step("t1", "shop/orders.look", "shop/orders.look", text="let me see", message_id="s1")
        client.step("t1", "shop/orders.refund!")
        line = "used orders.look ×2, orders.refund ✗"
        await until(pilot, lambda: texts(app) == ["go", "let me see", line])
        assert "Working" in state(app)
        assert "interrupt" in enabled(app)
        pieces(client, "a", 3, "do", "ne")
        client.reply("t1", "done", message_id, "a")
        await until(pilot, lambda: texts(app) == ["go", "let me see", line, "done"])
        assert [widget.has_class("cut") for widget in app.query_one(Conversation).children] == [False] * 4


async def test_pieces_of_the_next_step_do_not_drop_those_of_one_whose_end_is_late() -> None:
    async with begun() as (client, app, pilot, message_id):
        pieces(client, "s1", 1, "let me see")
        pieces(client, "a", 2, "it is")
        await until(pilot, lambda: texts(app) == ["go", "let me see", "it is"])
        client.step("t1", "look", text="let me see!", message_id="s1")
        client.reply("t1", "it is so", message_id, "a")
        await until(pilot, lambda: texts(app)[1:3] == ["let me see!", "it is so"])
        assert sorted(texts(app)) == sorted(["go", "let me see!", "it is so", "used look"])


async def test_words_before_a_call_that_waits_for_an_approval_are_not_cut() -> None:
    async with begun() as (client, app, pilot, message_id):
        pieces(client, "s1", 1, "I will refund it")
        client.ask("t1", "May I?", message_id, "approve", "refuse", request_id="r1")
        await until(pilot, lambda: question(app) == APPROVAL)
        await pilot.press("f6", "enter")
        await until(pilot, lambda: question(app) is None)
        client.step("t1", "refund", text="I will refund it.", message_id="s1")
        await until(pilot, lambda: texts(app) == ["go", "I will refund it.", "May I?", "used refund"])
        assert not any(widget.has_class("cut") for widget in app.query_one(Conversation).children)


async def test_a_message_that_waits_stays_queued_through_a_question_until_a_step_reads_it() -> None:
    async with begun() as (client, app, pilot, message_id):
        await write(pilot, "by the way")
        await until(pilot, lambda: "by the way\nqueued" in texts(app))
        client.ask("t1", "May I?", message_id, "approve", "refuse", request_id="r1")
        await until(pilot, lambda: question(app) == APPROVAL)
        assert "by the way\nqueued" in texts(app)
        await pilot.press("f6", "enter")
        await until(pilot, lambda: question(app) is None)
        client.step("t1", "refund", read=(client.sent[1][0],))
        await until(pilot, lambda: "by the way" in texts(app))


async def test_a_note_for_the_agent_is_nobodys_words() -> None:
    async with begun() as (client, app, pilot, message_id):
        client.reply("t1", "started", message_id)
        client.note("t1", "Sub-task k is COMPLETED.\n<result>\n\nall \x1b[2Jwell\n</result>")
        await until(pilot, lambda: len(texts(app)) == 3)
        assert texts(app)[2] == "Sub-task k is COMPLETED.\nall [2Jwell"
        assert app.query_one(Conversation).children[2].has_class("note")


async def test_the_plan_is_a_short_list_around_the_step_that_is_worked_on() -> None:
    async with begun() as (client, app, pilot, _):
        steps = tuple(PlanStep(id=f"s{n}", name=f"Step\n{n}", status="pending") for n in range(6))
        client.step("t1", "create_plan", data=TaskData(plan=Plan(steps=steps)))
        await until(pilot, lambda: family(app) == ("Plan · 0 of 6 done", "· Step 0", "· Step 1", "· Step 2"))
        status = ("done", "done", "done", "active", "pending", "pending")
        later = tuple(step.model_copy(update={"status": word}) for step, word in zip(steps, status, strict=True))
        client.step("t1", "complete_step", data=TaskData(plan=Plan(steps=later)))
        await until(pilot, lambda: family(app) == ("Plan · 3 of 6 done", "✓ Step 2", "▸ Step 3", "· Step 4"))
        done = tuple(step.model_copy(update={"status": "done"}) for step in steps)
        client.tell("t1", TaskData(plan=Plan(steps=done)))
        await until(pilot, lambda: family(app) == ("Plan · 6 of 6 done", "✓ Step 3", "✓ Step 4", "✓ Step 5"))


async def test_a_question_fits_on_a_small_screen() -> None:
    async with asked() as (client, app, pilot):
        steps = tuple(PlanStep(id=f"s{n}", name=f"Step {n}") for n in range(6))
        client.tell("t1", TaskData(plan=Plan(steps=steps)))
        await pilot.resize_terminal(60, 20)
        await until(pilot, lambda: len(family(app)) == 4)
        await pilot.pause()
        for widget in (app.query_one(Composer), app.query_one("#question-words", Static), app.query_one(Conversation)):
            assert widget.region.height > 0
            assert widget.region.bottom <= 20
