"""What a person writes: earlier messages, drafts, text of all scripts, and a terminal's input method."""

from textual.events import Paste
from textual.pilot import Pilot

from tests.unit.sdk.fake_client import FakeClient
from tests.unit.sdk.tui_pilot import misfits, notice, open_app, screen, state, texts, until, write
from tiny_harness.client import MessageView
from tiny_harness.errors import ConnectionLost
from tiny_harness.tui.app import HarnessApp
from tiny_harness.tui.composer import Composer
from tiny_harness.tui.conversation import Conversation
from tiny_harness.tui.outbox import Outgoing
from tiny_harness.tui.picker import TaskPicker
from tiny_harness.tui.room import Room
from tiny_harness.tui.words import SENDING
from tiny_harness.tui.writing import MAX_SENT, Drafts, Pastes, Sent

SCRIPTS = (
    "宽字符的文本也要排好",
    "e\u0301 a\u0308 combining",
    "👩‍👩‍👧‍👦 family, 🇩🇪 flag, 👍🏽 thumb",
    "שלום עולם and مرحبا بالعالم",
    "tab\tinside",
)


async def test_up_and_down_bring_earlier_messages_back_and_keep_what_was_being_written() -> None:
    async with open_app() as (_, app, pilot):
        composer = app.query_one(Composer)
        await write(pilot, "one")
        await write(pilot, "two\nlines")
        await pilot.press("n", "e", "w", "up")
        assert composer.text == "two\nlines"
        await pilot.press("up")
        assert composer.text == "two\nlines", "the cursor goes to the first line before the text is another one"
        await pilot.press("up")
        assert composer.text == "one"
        await pilot.press("up")
        assert composer.text == "one"
        await pilot.press("down", "down", "down")
        assert composer.text == "new"


def test_the_same_message_twice_in_a_row_is_remembered_once_and_not_without_end() -> None:
    sent = Sent()
    for number in range(MAX_SENT + 5):
        sent.add(f"{number}")
        sent.add(f"{number}")
    back = [sent.move(-1, "draft") for _ in range(MAX_SENT + 1)]
    assert back[:2] == [f"{MAX_SENT + 4}", f"{MAX_SENT + 3}"]
    assert back[-2:] == ["5", None]


async def test_each_task_has_its_own_draft() -> None:
    client = FakeClient()
    client.add_task("old", "Old", "question", "answer")
    async with open_app(client=client, task_id="old") as (_, app, pilot):
        composer = app.query_one(Composer)
        await until(pilot, lambda: len(texts(app)) == 2)
        composer.insert("for the old one")
        await pilot.press("f4")
        assert composer.text == ""
        composer.insert("for a new one")
        await open_old(app, pilot)
        await until(pilot, lambda: composer.text == "for the old one")
        await pilot.press("f4")
        assert composer.text == "for a new one"


async def open_old(app: HarnessApp, pilot: Pilot[None]) -> None:
    """Choose the old task from the list."""
    await pilot.press("f5")
    await until(pilot, lambda: isinstance(app.screen, TaskPicker) and "Old" in "\n".join(screen(app)))
    await pilot.press("enter")


async def test_a_message_that_could_not_be_sent_goes_back_to_the_draft_of_its_own_task() -> None:
    client = FakeClient()
    client.add_task("old", "Old", "question", "answer")
    async with open_app(client=client, task_id="old") as (_, app, pilot):
        await until(pilot, lambda: len(texts(app)) == 2)
        await pilot.press("f4")
        await app.take_back(Outgoing(Room(opened="old"), "lost", "m"), ConnectionLost("gone"))
        assert "gone" in notice(app)
        assert app.query_one(Composer).text == ""
        await open_old(app, pilot)
        await until(pilot, lambda: app.query_one(Composer).text == "lost")


def test_a_draft_is_taken_once_and_what_comes_back_stands_before_it() -> None:
    drafts = Drafts()
    drafts.leave("t", "later")
    drafts.put_back("t", "sooner")
    assert (drafts.take("t"), drafts.take("t"), drafts.take(None)) == ("sooner\nlater", "", "")


def test_two_large_pastes_are_two_tokens_and_each_is_put_in_its_place() -> None:
    pastes = Pastes()
    first, second = (pastes.fold(letter * 30_000) for letter in "ab")
    assert pastes.unfold(f"{second} and {first}") == "b" * 30_000 + " and " + "a" * 30_000


async def test_text_of_all_scripts_fits_on_the_screen_in_the_composer_and_in_the_conversation() -> None:
    async with open_app((60, 24)) as (client, app, pilot):
        for text in SCRIPTS:
            app.post_message(Paste(text * 4))
            await until(pilot, lambda: bool(app.query_one(Composer).text))
            await until(pilot, lambda: misfits(app) == [], shown=lambda: misfits(app))
            await pilot.press("enter")
        await until(pilot, lambda: len(client.sent) == len(SCRIPTS))
        client.reply("t1", "\n\n".join(f"* **{text}** {text}" for text in SCRIPTS), client.sent[0][0])
        await until(pilot, lambda: "Your turn" in state(app))
        for columns in (60, 61, 75, 110, 60):
            await pilot.resize_terminal(columns, 24)
            await until(pilot, lambda: misfits(app) == [], shown=lambda: misfits(app))


async def test_what_an_input_method_writes_is_text_and_only_the_key_itself_sends() -> None:
    async with open_app() as (client, app, pilot):
        # A terminal keeps the Enter that confirms a composition, and hands over the letters alone.
        await pilot.press(*"日本語")
        await pilot.pause()
        assert app.query_one(Composer).text == "日本語"
        assert client.sent == []
        await pilot.press("enter")
        await until(pilot, lambda: len(client.sent) == 1)


async def test_messages_that_are_still_being_sent_stand_in_the_order_in_which_they_were_written() -> None:
    async with open_app() as (client, app, pilot):
        client.add_task("old", "Old", "question", "answer")
        await open_old(app, pilot)
        await until(pilot, lambda: len(texts(app)) == 2)
        conversation = app.query_one(Conversation)
        for name in ("first", "second"):
            await conversation.add(MessageView(name, "user", name), SENDING)
        assert texts(app)[2:] == [f"first\n{SENDING}", f"second\n{SENDING}"]
        await conversation.add(MessageView("first", "user", "first"))
        await conversation.add(MessageView("reply", "agent", "a reply"))
        assert texts(app)[2:] == ["first", "a reply", f"second\n{SENDING}"]
