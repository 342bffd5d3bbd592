"""Long conversations: the last messages at once, older ones on scrolling up, the screen never full of all of them.

All but the first test have small windows and pages: the same code, in less time.
"""

import asyncio
from dataclasses import replace

import pytest
from textual.pilot import Pilot

from tests.unit.sdk.fake_client import FakeClient
from tests.unit.sdk.tui_pilot import PATIENCE_S, notice, open_app, state, texts, until
from tiny_harness.client import DeltaText, MessageView, Received, Replied, TaskEvent, TaskShown, TaskView
from tiny_harness.states import TaskState
from tiny_harness.tui import carrier, older
from tiny_harness.tui import conversation as conversation_module
from tiny_harness.tui.app import HarnessApp
from tiny_harness.tui.conversation import WINDOW, Conversation

MANY = 1_000
FEW, SMALL, MOST, PAGE = 200, 30, 60, 50


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make windows and pages small."""
    for name, value in (("WINDOW", SMALL), ("FIRST", 10), ("MOST", MOST)):
        monkeypatch.setattr(conversation_module, name, value)
    monkeypatch.setattr(older, "PAGE", PAGE)
    monkeypatch.setattr(carrier, "FULL", 20)


def long_client(shown: int, count: int = MANY) -> FakeClient:
    """A harness with a task of many messages, of which a client that opens it is shown the last ones."""
    client = FakeClient()
    client.add_task("old", "Old", *(f"m{number}" for number in range(count)))
    view = client.views["old"]
    client.past["old"] = [_event(view, message, seq) for seq, message in enumerate(view.messages, start=1)]
    client.views["old"] = replace(view, messages=view.messages[-shown:])
    return client


def _event(view: TaskView, message: MessageView, seq: int) -> TaskEvent:
    if seq == 1:
        return TaskShown(view=replace(view, messages=(message,)), seq=1)
    if message.role == "user":
        return Received(task_id="old", context_id="ctx", state=TaskState.WORKING, seq=seq, message=message)
    return Replied(task_id="old", context_id="ctx", state=TaskState.INPUT_REQUIRED, seq=seq, message=message)


def names(first: int, last: int) -> list[str]:
    return [f"m{number}" for number in range(first, last)]


async def up_until_more(pilot: Pilot[None], app: HarnessApp) -> None:
    """Scroll up, page by page and for as long as it takes, until there is more to read."""
    seen = len(texts(app))
    async with asyncio.timeout(PATIENCE_S):
        while len(texts(app)) == seen:
            await pilot.press("pageup")
            await pilot.pause()


async def test_the_last_messages_of_a_long_task_are_there_and_the_end_is_in_sight() -> None:
    async with open_app(client=long_client(100), task_id="old") as (_, app, pilot):
        await until(pilot, lambda: len(texts(app)) == WINDOW)
        assert texts(app) == names(MANY - WINDOW, MANY)
        assert app.query_one(Conversation).is_at_end


@pytest.mark.usefixtures("small")
async def test_all_that_was_said_comes_as_the_reader_scrolls_up_each_once_and_in_order() -> None:
    async with open_app(client=long_client(20, FEW), task_id="old") as (_, app, pilot):
        await until(pilot, lambda: len(texts(app)) >= SMALL)
        seen = 0
        while len(texts(app)) < FEW:
            await pilot.pause()
            assert len(texts(app)) > seen
            seen = len(texts(app))
            assert texts(app) == names(FEW - seen, FEW)
            await up_until_more(pilot, app)
        assert texts(app) == names(0, FEW)


@pytest.mark.usefixtures("small")
async def test_what_the_reader_reads_stays_where_it_is_while_more_comes_above() -> None:
    async with open_app(client=long_client(20, FEW), task_id="old") as (_, app, pilot):
        await until(pilot, lambda: len(texts(app)) >= SMALL)
        conversation = app.query_one(Conversation)
        conversation.scroll_to(y=10, animate=False)
        await pilot.pause()
        before = conversation.virtual_size.height - conversation.scroll_y
        await up_until_more(pilot, app)
        await pilot.pause()
        await until(pilot, lambda: conversation.virtual_size.height - conversation.scroll_y >= before)
        assert conversation.scroll_y > 10, "the first line jumped into sight"


@pytest.mark.usefixtures("small")
async def test_a_reply_that_grows_below_a_long_conversation_does_not_pull_the_reader_down() -> None:
    async with open_app(client=long_client(20, FEW), task_id="old") as (client, app, pilot):
        await until(pilot, lambda: len(texts(app)) >= SMALL)
        await pilot.press("pageup", "pageup")
        assert not app.query_one(Conversation).is_at_end
        for index in range(20):
            client.happen(
                "old", DeltaText(message_id="a", turn=1, step=1, attempt=1, index=index, text=f"line {index}\n\n")
            )
        await until(pilot, lambda: texts(app)[-1].startswith("line 0") and "line 19" in texts(app)[-1])
        assert not app.query_one(Conversation).is_at_end
        async with asyncio.timeout(PATIENCE_S):
            while not app.query_one(Conversation).is_at_end:
                await pilot.press("pagedown")


@pytest.mark.usefixtures("small")
async def test_a_conversation_that_grows_long_lets_its_oldest_words_leave_the_screen_and_has_them_again() -> None:
    client = long_client(10, 10)
    async with open_app(client=client, task_id="old") as (_, app, pilot):
        await until(pilot, lambda: len(texts(app)) == 10)
        for number in range(10, MOST + 50):
            client.reply("old", f"m{number}", "x", f"n{number}")
        await until(pilot, lambda: texts(app)[-1] == f"m{MOST + 49}")
        assert SMALL <= len(texts(app)) <= MOST
        while texts(app)[0] != "m0":
            await up_until_more(pilot, app)
        assert texts(app) == names(0, MOST + 50)


@pytest.mark.usefixtures("small")
async def test_a_harness_that_has_no_more_to_tell_is_asked_once() -> None:
    client = long_client(20, FEW)
    client.past["old"] = []
    async with open_app(client=client, task_id="old") as (_, app, pilot):
        await until(pilot, lambda: "Your turn" in state(app))
        await until(pilot, lambda: len(texts(app)) == 20)
        assert notice(app) == ""


@pytest.mark.usefixtures("small")
async def test_a_snapshot_that_goes_on_somewhere_else_leaves_no_gap() -> None:
    client = long_client(5, 10)
    async with open_app(client=client, task_id="old") as (_, app, pilot):
        await until(pilot, lambda: texts(app) == names(0, 10) or texts(app) == names(5, 10))
        view = client.views["old"]
        later = tuple(MessageView(f"later-{number}", "agent", f"later {number}") for number in range(3))
        client.happen("old", TaskShown(view=replace(view, messages=later), seq=99))
        await until(pilot, lambda: texts(app)[-3:] == ["later 0", "later 1", "later 2"])
        assert "m9" not in texts(app)
