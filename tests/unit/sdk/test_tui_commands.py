"""Slash commands and sub-tasks on the full-screen surface, by keyboard alone."""

from textual.widgets import OptionList, Static

from tests.unit.sdk.tui_pilot import dimmed, enabled, family, notice, offered, open_app, state, texts, until, write
from tiny_harness.client import CommandOffer, DeltaText, MessageView, Replied
from tiny_harness.errors import TaskNotFound
from tiny_harness.ext.task import SubTask, TaskData
from tiny_harness.states import TaskState
from tiny_harness.tui.app import HarnessApp
from tiny_harness.tui.completions import Completions, matching
from tiny_harness.tui.composer import Composer
from tiny_harness.tui.conversation import Conversation
from tiny_harness.tui.family import SubTaskPicker

MODEL, STATUS, SUB_TASK = (
    "/model [name]  Choose a model",
    "/status  Where the task stands",
    "/sub-task <goal>  Start a sub-task",
)


def child(task_id: str, state: str = "TASK_STATE_INPUT_REQUIRED", sub_state: str | None = None) -> SubTask:
    return SubTask(task_id=task_id, state=state, sub_state=sub_state)


def trouble(app: HarnessApp) -> list[bool]:
    """Which of the things that the conversation shows are in the style of errors."""
    return [widget.has_class("trouble") for widget in app.query_one(Conversation).children]


async def test_a_slash_lists_the_commands_and_typing_narrows_them() -> None:
    async with open_app() as (_, app, pilot):
        listing = app.query_one(Completions)
        await pilot.press("/")
        await until(pilot, lambda: offered(app) == [MODEL, STATUS, SUB_TASK])
        assert listing.has_class("open")
        await pilot.press("s")
        await until(pilot, lambda: offered(app) == [STATUS, SUB_TASK])
        await pilot.press("u")
        await until(pilot, lambda: offered(app) == [SUB_TASK])
        await pilot.press("x")
        await until(pilot, lambda: offered(app) == [])
        assert not listing.has_class("open")
        await pilot.press("backspace")
        await until(pilot, lambda: offered(app) == [SUB_TASK])


async def test_tab_and_enter_write_the_chosen_command_out_and_send_nothing() -> None:
    async with open_app() as (client, app, pilot):
        composer = app.query_one(Composer)
        await pilot.press("/", "s", "down", "tab")
        assert composer.text == "/sub-task "
        assert app.focused is composer
        await pilot.press("x")
        await until(pilot, lambda: composer.text == "/sub-task x")
        composer.text = ""
        await pilot.press("/", "up", "up", "enter")
        assert composer.text == "/status "
        await pilot.pause()
        assert client.sent == []
        assert offered(app) == []


async def test_a_command_that_is_written_out_is_sent_by_enter_although_the_list_is_open() -> None:
    async with open_app() as (client, _, pilot):
        await pilot.press(*"/status", "enter")
        await until(pilot, lambda: len(client.sent) == 1)
        assert client.views["t1"].messages[0].text == "/status"


async def test_escape_closes_the_list_and_does_not_interrupt_the_turn() -> None:
    async with open_app() as (client, app, pilot):
        await write(pilot, "hello")
        await until(pilot, lambda: "Working" in state(app))
        await pilot.press("/", "s", "escape")
        await until(pilot, lambda: offered(app) == [])
        await pilot.press("t")
        await pilot.pause()
        assert offered(app) == []
        assert app.query_one(Composer).text == "/st"
        assert client.views["t1"].state is TaskState.WORKING
        app.query_one(Composer).text = ""
        await pilot.press("/")
        await until(pilot, lambda: len(offered(app)) == 3)


async def test_arrows_move_the_cursor_and_escape_interrupts_while_no_command_is_typed() -> None:
    async with open_app() as (_, app, pilot):
        await write(pilot, "hello")
        await until(pilot, lambda: "Working" in state(app))
        await pilot.press("a", "ctrl+j", "b", "up")
        assert app.query_one(Composer).cursor_location[0] == 0
        await pilot.press("escape")
        await until(pilot, lambda: "Your turn" in state(app))


async def test_each_slash_asks_for_the_commands_anew_for_the_harness_may_be_another_one() -> None:
    async with open_app() as (client, app, pilot):
        client.later_offers = (CommandOffer(name="deploy", description="odd \x1b[2J"),)
        await pilot.press("/")
        await until(pilot, lambda: offered(app) == ["/deploy  odd [2J"])


def test_the_command_that_is_typed_in_full_comes_first() -> None:
    offers = (CommandOffer(name="a-b"), CommandOffer(name="a"), CommandOffer(name="b"))
    assert [offer.name for offer in matching(offers, "/a")] == ["a", "a-b"]
    assert matching(offers, "/a ") == matching(offers, " /a") == matching(offers, "a") == matching(offers, "/a\n") == ()


async def test_the_harness_answers_apart_and_a_first_message_may_be_a_command() -> None:
    async with open_app() as (client, app, pilot):
        await write(pilot, "/status")
        await until(pilot, lambda: texts(app) == ["/status"])
        client.answer_command("t1", "all is\nwell", client.sent[0][0])
        await until(pilot, lambda: texts(app) == ["/status", "/status\nall is\nwell"])
        assert trouble(app) == [False, False]
        assert "Your turn" in state(app)
        await write(pilot, "hello")
        await until(pilot, lambda: "Working" in state(app))
        assert client.sent[1][1] == "t1"


async def test_refused_and_failed_are_told_in_words_and_style() -> None:
    async with open_app() as (client, app, pilot):
        await write(pilot, "/status")
        await until(pilot, lambda: "t1" in client.streams)
        client.answer_command("t1", "not for you", client.sent[0][0], "refused")
        await write(pilot, "/status again")
        await until(pilot, lambda: len(client.sent) == 2)
        client.answer_command("t1", "it broke \x1b[2J", client.sent[1][0], "failed")
        shown = ["/status", "/status refused\nnot for you", "/status again", "/status failed\nit broke [2J"]
        await until(pilot, lambda: texts(app) == shown)
        assert trouble(app) == [False, True, False, True]


async def test_a_command_in_the_middle_of_a_turn_neither_ends_nor_garbles_it() -> None:
    async with open_app() as (client, app, pilot):

        def piece(index: int, text: str) -> None:
            client.happen("t1", DeltaText(message_id="a", turn=1, step=1, attempt=1, index=index, text=text))

        await write(pilot, "hello")
        await until(pilot, lambda: "t1" in client.streams)
        piece(0, "Once ")
        await until(pilot, lambda: texts(app) == ["hello", "Once "])
        await write(pilot, "next")
        await write(pilot, "/status")
        await until(pilot, lambda: len(client.sent) == 3)
        client.answer_command("t1", "all is well", client.sent[2][0])
        after = ["next\nqueued", "/status", "/status\nall is well"]
        await until(pilot, lambda: texts(app)[2:] == after)
        assert "Working" in state(app)
        piece(1, "upon")
        await until(pilot, lambda: texts(app) == ["hello", "Once upon", *after])
        assert not any(widget.has_class("cut") for widget in app.query_one(Conversation).children)
        client.reply("t1", "Once upon a time", client.sent[0][0], "a", more=True)
        await until(pilot, lambda: texts(app) == ["hello", "Once upon a time", "next", *after[1:]])


async def test_words_that_a_policy_refused_are_answered_in_the_style_of_errors() -> None:
    async with open_app() as (client, app, pilot):
        await write(pilot, "tell me the secret")
        await until(pilot, lambda: "t1" in client.streams)
        [(own_id, _)] = client.sent
        refusal = MessageView("r", "agent", "secrets stay secret")
        parked = TaskState.INPUT_REQUIRED
        to = (own_id,)
        client.happen(
            "t1",
            Replied(task_id="t1", context_id="ctx", state=parked, seq=2, in_reply_to=to, refused=to, message=refusal),
        )
        await until(pilot, lambda: texts(app)[1:] == ["message refused\nsecrets stay secret"])
        assert trouble(app) == [False, True]


async def test_what_another_surface_chooses_or_starts_shows_at_once() -> None:
    async with open_app() as (client, app, pilot):
        await write(pilot, "hello")
        await until(pilot, lambda: "Working" in state(app))
        assert {"sub_task", "parent"} <= dimmed(app)
        client.tell("t1", TaskData(model="big\x1b", reasoning_effort="high", sub_tasks=(child("k1"),)))
        chosen = app.query_one("#chosen", Static)
        await until(pilot, lambda: str(chosen.render()) == "big · high")
        assert family(app) == ("Sub-task k1 · Input required",)
        await until(pilot, lambda: "sub_task" in enabled(app))
        assert "parent" in dimmed(app)
        children = [child("k1", "TASK_STATE_COMPLETED"), *(child(f"k{n}", "TASK_STATE_NEW") for n in range(2, 6))]
        client.tell("t1", TaskData(sub_tasks=tuple(children)))
        lines = ("Sub-task k1 · Completed", "Sub-task k2 · NEW", "Sub-task k3 · NEW", "… and 2 more sub-tasks")
        await until(pilot, lambda: family(app) == lines)
        assert "Working" in state(app)
        client.tell("t1", TaskData(model="small"))
        await until(pilot, lambda: str(chosen.render()) == "small · high")
        assert family(app) == lines


async def test_a_key_opens_the_sub_task_and_another_goes_back_to_the_parent() -> None:
    async with open_app() as (client, app, pilot):
        client.add_task("k1", "The part", "goal", "yes?")
        await write(pilot, "hello")
        await until(pilot, lambda: "Working" in state(app))
        await pilot.press("f8", "f9")
        await pilot.pause()
        assert texts(app) == ["hello"]
        client.tell("t2", TaskData(sub_tasks=(child("k1"),)))
        client.tell("k1", TaskData(parent_tasks=("t2",)))
        await until(pilot, lambda: "sub_task" in enabled(app))
        await pilot.press("f8")
        await until(pilot, lambda: texts(app) == ["goal", "yes?"])
        assert family(app) == ("Part of t2",)
        await until(pilot, lambda: "parent" in enabled(app) and "sub_task" in dimmed(app))
        await pilot.press("f9")
        await until(pilot, lambda: texts(app) == ["hello"])
        await until(pilot, lambda: "parent" in dimmed(app))


async def test_of_several_sub_tasks_one_is_chosen_by_its_name() -> None:
    async with open_app() as (client, app, pilot):
        client.add_task("k1", "First\x1b part")
        client.add_task("k2", "Second part", "goal")
        await write(pilot, "hello")
        await until(pilot, lambda: "Working" in state(app))
        client.tell("t3", TaskData(sub_tasks=(child("k1"), child("far"), child("k2", sub_state="awaiting-answer"))))
        await until(pilot, lambda: "sub_task" in enabled(app))
        await pilot.press("f8")
        await until(pilot, lambda: isinstance(app.screen, SubTaskPicker))
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(app.screen, SubTaskPicker))
        await pilot.press("f8")
        await until(pilot, lambda: isinstance(app.screen, SubTaskPicker))
        listing = app.screen.query_one(OptionList)
        lines = [
            "First part\n  Input required",
            "far\n  Input required",
            "Second part\n  Input required · Waiting for your answer",
        ]
        await until(pilot, lambda: [str(option.prompt) for option in listing.options] == lines)
        await pilot.press("down", "down", "enter")
        await until(pilot, lambda: texts(app) == ["goal"])


async def test_a_parent_that_is_not_ours_is_told_in_place() -> None:
    async with open_app() as (client, app, pilot):
        client.add_task("k1", "The part", "goal")
        client.tell("k1", TaskData(parent_tasks=("nobody",)))
        await write(pilot, "hello")
        await until(pilot, lambda: "Working" in state(app))
        client.tell("t2", TaskData(sub_tasks=(child("k1"),)))
        await until(pilot, lambda: "sub_task" in enabled(app))
        await pilot.press("f8")
        await until(pilot, lambda: "parent" in enabled(app))
        await pilot.press("f9")
        await until(pilot, lambda: notice(app) == str(TaskNotFound("nobody")))
