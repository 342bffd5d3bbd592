"""The full-screen surface, driven by keys, with a client that the test plays."""

import pytest
from textual.events import Paste
from textual.widgets import OptionList, Static

from tests.unit.sdk.fake_client import FakeClient
from tests.unit.sdk.tui_pilot import dimmed, enabled, notice, open_app, state, texts, until, write
from tiny_harness.client import Connected, DeltaText, Reconnecting
from tiny_harness.errors import ConnectionLost, ServerRefused
from tiny_harness.states import TaskState
from tiny_harness.tui.app import ASK_CANCEL, HarnessApp
from tiny_harness.tui.composer import Composer
from tiny_harness.tui.conversation import Conversation
from tiny_harness.tui.picker import TaskPicker
from tiny_harness.tui.room import ENDED


async def test_an_empty_screen_says_what_to_do() -> None:
    async with open_app() as (_, app, pilot):
        await pilot.pause()
        assert "Type a message" in str(app.query_one("#welcome", Static).render())
        assert app.query_one("#welcome").display
        assert "Not started" in state(app)
        assert {"complete", "cancel", "interrupt", "new"} <= dimmed(app)
        assert {"tasks", "quit"} <= enabled(app)


async def test_a_message_starts_a_task_and_its_reply_is_streamed() -> None:
    async with open_app() as (client, app, pilot):
        await write(pilot, "hello")
        await until(pilot, lambda: "Working" in state(app))
        assert texts(app) == ["hello"]
        assert not app.query_one("#welcome").display
        assert app.query_one(Composer).text == ""
        assert {"complete", "cancel", "interrupt", "new"} <= enabled(app)
        (message_id, _) = client.sent[0]
        for index, piece in enumerate(["# Hi", " the", "re"]):
            client.happen("t1", DeltaText(message_id="a", turn=1, step=1, attempt=1, index=index, text=piece))
        await until(pilot, lambda: texts(app) == ["hello", "# Hi there"])
        client.reply("t1", "# Hi there!", message_id, "a")
        await until(pilot, lambda: texts(app) == ["hello", "# Hi there!"])
        await until(pilot, lambda: "Input required · Your turn" in state(app))
        assert "interrupt" in dimmed(app)
        assert "complete" in enabled(app)


async def test_a_retried_attempt_replaces_what_the_first_one_wrote() -> None:
    async with open_app() as (client, app, pilot):
        await write(pilot, "hello")
        await until(pilot, lambda: "t1" in client.streams)

        def piece(attempt: int, index: int, text: str) -> None:
            client.happen("t1", DeltaText(message_id="a", turn=1, step=1, attempt=attempt, index=index, text=text))

        piece(1, 0, "wrong")
        await until(pilot, lambda: texts(app) == ["hello", "wrong"])
        piece(2, 0, "right")
        piece(1, 1, "late")
        piece(2, 0, "right")
        await until(pilot, lambda: texts(app) == ["hello", "right"])


async def test_a_conversation_goes_on_in_the_same_task() -> None:
    async with open_app() as (client, app, pilot):
        await write(pilot, "one")
        await until(pilot, lambda: "t1" in client.streams)
        client.reply("t1", "first", client.sent[0][0])
        await until(pilot, lambda: "Your turn" in state(app))
        await write(pilot, "two")
        await until(pilot, lambda: len(client.sent) == 2)
        client.reply("t1", "second", client.sent[1][0])
        await until(pilot, lambda: texts(app) == ["one", "first", "two", "second"])
        assert [task_id for _, task_id in client.sent] == [None, "t1"]


async def test_a_message_to_a_task_that_is_being_opened_goes_to_that_task() -> None:
    client = FakeClient()
    client.add_task("old", "Old", "question", "answer")
    client.may_show.clear()
    app = HarnessApp(client.as_client(), "old")
    async with app.run_test(size=(90, 30)) as pilot:
        await write(pilot, "more")
        await until(pilot, lambda: [task_id for _, task_id in client.sent] == ["old"])
        client.may_show.set()
        await until(pilot, lambda: texts(app)[-1] == "more" and "Working" in state(app))


async def test_a_message_to_a_busy_task_is_shown_as_queued_until_it_is_read() -> None:
    async with open_app() as (client, app, pilot):
        await write(pilot, "one")
        await until(pilot, lambda: "Working" in state(app))
        await write(pilot, "two")
        await until(pilot, lambda: texts(app) == ["one", "two\nqueued"])
        client.reply("t1", "first", client.sent[0][0], more=True)
        await until(pilot, lambda: texts(app) == ["one", "two", "first"])


async def test_another_surface_completes_the_task_and_a_message_starts_a_new_one_in_its_context() -> None:
    async with open_app() as (client, app, pilot):
        await write(pilot, "one")
        await until(pilot, lambda: "Working" in state(app))
        client.change("t1", TaskState.COMPLETED)
        await until(pilot, lambda: "Completed" in state(app))
        assert {"complete", "cancel", "interrupt"} <= dimmed(app)
        assert app.query_one(Composer).placeholder == ENDED
        await write(pilot, "two")
        await until(pilot, lambda: "t2" in client.views)
        assert client.views["t2"].context_id == "ctx"
        await until(pilot, lambda: texts(app) == ["two"])


async def test_complete_ends_the_task() -> None:
    async with open_app() as (client, app, pilot):
        await write(pilot, "one")
        await until(pilot, lambda: "Working" in state(app))
        await pilot.press("f2")
        await until(pilot, lambda: "Completed" in state(app))
        assert client.views["t1"].state is TaskState.COMPLETED


async def test_cancel_asks_once_in_place() -> None:
    async with open_app() as (client, app, pilot):
        await write(pilot, "one")
        await until(pilot, lambda: "Working" in state(app))
        await pilot.press("f3")
        assert notice(app) == ASK_CANCEL
        await pilot.press("escape")
        assert notice(app) == ""
        assert client.views["t1"].state is TaskState.WORKING
        await pilot.press("f3", "x", "f3")
        assert client.views["t1"].state is TaskState.WORKING
        assert notice(app) == ASK_CANCEL
        await pilot.press("f3")
        await until(pilot, lambda: "Canceled" in state(app))
        assert app.query_one(Composer).text == "x"


async def test_interrupt_cuts_the_turn_and_dims_what_it_had_written() -> None:
    async with open_app() as (client, app, pilot):
        await write(pilot, "one")
        await until(pilot, lambda: "Working" in state(app))
        client.happen("t1", DeltaText(message_id="a", turn=1, step=1, attempt=1, index=0, text="half"))
        await until(pilot, lambda: texts(app) == ["one", "half"])
        await pilot.press("escape")
        await until(pilot, lambda: "Your turn" in state(app))
        assert [widget.has_class("cut") for widget in app.query_one(Conversation).children] == [False, True]


async def test_what_could_not_be_sent_is_told_and_kept_and_keeps_its_id() -> None:
    async with open_app() as (client, app, pilot):
        client.fails = [ConnectionLost("gone")]
        await write(pilot, "hello")
        await until(pilot, lambda: "gone" in notice(app))
        assert app.query_one(Composer).text == "hello"
        assert texts(app) == []
        assert app.query_one("#welcome").display
        await pilot.press("enter")
        await until(pilot, lambda: "Working" in state(app))
        assert notice(app) == ""
        assert client.sent[0] == client.sent[1]


async def test_a_refused_control_is_told_in_place() -> None:
    async with open_app() as (client, app, pilot):
        await write(pilot, "hello")
        await until(pilot, lambda: "Working" in state(app))
        client.fails = [ServerRefused("not \x1b[31mnow")]
        await pilot.press("f2")
        await until(pilot, lambda: notice(app) == "not [31mnow")


async def test_a_lost_connection_is_shown_until_it_is_back() -> None:
    async with open_app() as (client, app, pilot):
        link = app.query_one("#link", Static)
        await write(pilot, "hello")
        await until(pilot, lambda: "t1" in client.streams)
        assert str(link.render()) == "Connected"
        client.happen("t1", Reconnecting(reason="gone"))
        await until(pilot, lambda: str(link.render()) == "Reconnecting …")
        client.happen("t1", Connected())
        await until(pilot, lambda: str(link.render()) == "Connected")


async def test_the_list_of_tasks_leads_back_to_one() -> None:
    async with open_app() as (client, app, pilot):
        client.add_task("old", "Old\x1b[2J thing", "question", "answer")
        await write(pilot, "hello")
        await until(pilot, lambda: "Working" in state(app))
        await pilot.press("f5")
        await until(pilot, lambda: isinstance(app.screen, TaskPicker))
        listing = app.screen.query_one(OptionList)
        await until(pilot, lambda: listing.option_count == 2)
        shown = [str(listing.get_option_at_index(index).prompt) for index in range(2)]
        assert shown == ["hello\n  Working", "Old[2J thing\n  Input required · Your turn"]
        await pilot.press("down", "enter")
        await until(pilot, lambda: texts(app) == ["question", "answer"])
        assert str(app.query_one("#name", Static).render()) == "Old[2J thing"
        await write(pilot, "more")
        await until(pilot, lambda: client.sent[-1][1] == "old")


async def test_it_opens_with_the_task_that_it_was_given() -> None:
    client = FakeClient()
    client.add_task("old", "Old thing", "question", "answer")
    app = HarnessApp(client.as_client(), "old")
    async with app.run_test(size=(90, 30)) as pilot:
        await until(pilot, lambda: "Your turn" in state(app))
        assert texts(app) == ["question", "answer"]


async def test_the_list_of_tasks_keeps_up_and_can_be_left() -> None:
    async with open_app() as (client, app, pilot):
        await pilot.press("f5")
        await until(pilot, lambda: isinstance(app.screen, TaskPicker))
        picker = app.screen
        assert isinstance(picker, TaskPicker)
        words = picker.query_one("#picker-words", Static)
        await until(pilot, lambda: "No tasks yet" in str(words.render()))
        client.add_task("old", "Old thing")
        picker.look()
        await until(pilot, lambda: picker.query_one(OptionList).option_count == 1)
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(app.screen, TaskPicker))


async def test_new_begins_another_conversation_and_leaves_the_task_open() -> None:
    async with open_app() as (client, app, pilot):
        await write(pilot, "hello")
        await until(pilot, lambda: "Working" in state(app))
        await pilot.press("f4")
        await until(pilot, lambda: texts(app) == [])
        assert "Not started" in state(app)
        assert client.views["t1"].state is TaskState.WORKING
        await write(pilot, "other")
        await until(pilot, lambda: "t2" in client.views)
        client.reply("t1", "late", client.sent[0][0])
        await until(pilot, lambda: texts(app) == ["other"])


async def test_enter_sends_ctrl_j_breaks_the_line_and_a_paste_is_text() -> None:
    async with open_app() as (client, app, pilot):
        composer = app.query_one(Composer)
        await pilot.press("a", "ctrl+j", "b")
        app.post_message(Paste("c\nd\n"))
        await until(pilot, lambda: composer.text == "a\nbc\nd\n")
        assert client.sent == []
        await pilot.press("enter")
        await until(pilot, lambda: bool(client.views))
        assert client.views["t1"].messages[0].text == "a\nbc\nd\n"
        await pilot.press("space", "enter")
        assert composer.text == " "
        assert len(client.sent) == 1


@pytest.mark.parametrize("text", ["x" * 79 + "\r\n", "word "], ids=["many lines", "one line"])
async def test_a_megabyte_is_pasted_as_a_token_and_sent_whole(text: str) -> None:
    async with open_app() as (client, app, pilot):
        composer = app.query_one(Composer)
        pasted = text * (1_000_000 // len(text))
        sent = pasted.replace("\r\n", "\n")
        await pilot.press("a")
        app.post_message(Paste(pasted))
        await until(pilot, lambda: composer.text.startswith(f"a[paste 1: {len(sent):,} characters, "))
        assert len(composer.text) < 60
        await pilot.press("b", "enter")
        await until(pilot, lambda: bool(client.views))
        assert client.views["t1"].messages[0].text == f"a{sent}b"


async def test_a_megabyte_that_could_not_be_sent_is_a_token_again() -> None:
    async with open_app() as (client, app, pilot):
        client.fails = [ConnectionLost("gone")]
        app.post_message(Paste("y" * 1_000_000))
        await until(pilot, lambda: bool(app.query_one(Composer).text))
        await pilot.press("enter")
        await until(pilot, lambda: "gone" in notice(app))
        assert app.query_one(Composer).text.startswith("[paste 2: 1,000,000 characters, 1 line]")
