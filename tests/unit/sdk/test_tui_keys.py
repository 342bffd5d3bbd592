"""Everything by keyboard: the line of keys, the palette, the details, copying; and colours."""

import pytest
from textual.command import CommandPalette
from textual.widgets import OptionList, Static

from tests.unit.sdk.fake_client import FakeClient
from tests.unit.sdk.tui_pilot import dimmed, enabled, notice, open_app, screen, state, texts, until, write
from tiny_harness.ext.task import SubTask, TaskData
from tiny_harness.states import TaskState
from tiny_harness.tui import carrier
from tiny_harness.tui.app import HarnessApp
from tiny_harness.tui.composer import Composer
from tiny_harness.tui.keyline import Key, KeyLine, wrapped
from tiny_harness.tui.keys import KEYS
from tiny_harness.tui.picker import TaskPicker
from tiny_harness.tui.side import Side
from tiny_harness.tui.terminal import theme_for


def offered(app: HarnessApp) -> list[str]:
    """What the open palette lists."""
    listing = app.screen.query_one(OptionList)
    return [str(option.prompt).partition("\n")[0] for option in listing.options]


@pytest.mark.parametrize("columns", [60, 80, 120, 200])
async def test_every_key_is_in_sight_on_every_width(columns: int) -> None:
    async with open_app((columns, 20)) as (_, app, pilot):
        await until(pilot, lambda: "^Q Quit" in "\n".join(screen(app)[-3:]))
        shown = "\n".join(screen(app)[-3:])
        assert [binding.description for binding in KEYS if binding.description not in shown] == ["Answer"]


def test_keys_are_wrapped_between_keys_and_one_that_is_too_wide_has_a_line_of_its_own() -> None:
    keys = tuple(Key(name, "word", None, is_on=True) for name in ("a", "b", "a very long name", "c"))
    lines = [[key.content.plain for key in line] for line in wrapped(keys, 14)]
    assert lines == [["a word", "b word"], ["a very long name word"], ["c word"]]


async def test_what_cannot_be_done_now_is_dimmed_in_the_line_of_keys_and_not_hidden() -> None:
    async with open_app() as (client, app, pilot):
        line = app.query_one(KeyLine)
        await until(pilot, lambda: "Complete" in line.render().plain)

        def is_dim(word: str) -> bool:
            shown = line.render()
            return any("dim" in str(span.style) and word in shown.plain[span.start : span.end] for span in shown.spans)

        assert is_dim("Complete")
        assert not is_dim("Tasks")
        await write(pilot, "hello")
        await until(pilot, lambda: "complete" in enabled(app))
        await until(pilot, lambda: not is_dim("Complete"))
        client.change("t1", TaskState.COMPLETED)
        await until(pilot, lambda: "complete" in dimmed(app))
        await until(pilot, lambda: is_dim("Complete"))


async def test_the_palette_has_every_action_and_says_which_ones_not_now() -> None:
    async with open_app() as (_, app, pilot):
        await pilot.press("ctrl+p")
        await until(pilot, lambda: isinstance(app.screen, CommandPalette))
        await until(pilot, lambda: "Tasks" in offered(app))
        assert {"Complete · not now", "Cancel · not now", "New · not now", "Sub-task · not now"} <= set(offered(app))
        assert {"Tasks", "Details", "Theme", "Quit"} <= set(offered(app))


async def test_the_palette_completes_the_task() -> None:
    async with open_app() as (client, app, pilot):
        await write(pilot, "hello")
        await until(pilot, lambda: "Working" in state(app))
        await pilot.press("ctrl+p")
        await until(pilot, lambda: isinstance(app.screen, CommandPalette))
        await pilot.press(*"end the task as done")
        await until(pilot, lambda: offered(app)[:1] == ["Complete"])
        await pilot.press("enter")
        await until(pilot, lambda: "Completed" in state(app))
        assert client.views["t1"].state is TaskState.COMPLETED


async def test_the_keys_of_the_conversation_do_nothing_while_a_list_stands_before_it() -> None:
    async with open_app() as (_, app, pilot):
        await pilot.press("f5")
        await until(pilot, lambda: isinstance(app.screen, TaskPicker))
        await pilot.press("f7", "ctrl+p")
        await pilot.pause()
        assert isinstance(app.screen, TaskPicker)
        assert len(app.screen_stack) == 2
        await pilot.press("f5")
        await until(pilot, lambda: len(app.screen_stack) == 1)


async def test_the_details_lead_to_a_sub_task_by_keys_alone() -> None:
    client = FakeClient()
    client.add_task("k1", "The part", "goal", "yes?")
    client.add_task("t", "The whole", "question", "answer")
    client.tell("t", TaskData(sub_tasks=(SubTask(task_id="k1", state="TASK_STATE_WORKING"),)))
    async with open_app((80, 24), client, "t") as (_, app, pilot):
        await until(pilot, lambda: texts(app) == ["question", "answer"])
        await pilot.press("f7")
        await until(pilot, lambda: app.query_one(Side).display)
        await pilot.press("right", "right")
        await until(pilot, lambda: "k1" in "\n".join(screen(app)))
        await pilot.press("tab", "enter")
        await until(pilot, lambda: texts(app) == ["goal", "yes?"])


async def test_the_events_are_listed_as_they_happen_newest_first() -> None:
    async with open_app((120, 40)) as (client, app, pilot):
        await write(pilot, "hello")
        await until(pilot, lambda: "Working" in state(app))
        client.step("t1", "shop/look")
        client.reply("t1", "done", client.sent[0][0])
        app.query_one(Side).take_keys()
        await pilot.press("right", "right", "right")
        lines = ["#3 Reply · Input required · Your turn", "#2 Used look · Working", "#1 Shown whole"]
        await until(pilot, lambda: all(line in "\n".join(screen(app)) for line in lines))


async def test_the_last_reply_is_copied() -> None:
    async with open_app() as (client, app, pilot):
        assert "copy" in dimmed(app)
        await write(pilot, "hello")
        await until(pilot, lambda: "Working" in state(app))
        client.reply("t1", "the **answer**", client.sent[0][0])
        await until(pilot, lambda: "copy" in enabled(app))
        await pilot.press("ctrl+o")
        assert app.clipboard == "the **answer**"
        assert "clipboard" in notice(app)


async def test_a_harness_that_has_gone_is_told_also_while_no_task_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(carrier, "LINK_CHECK_S", 0.1)
    async with open_app() as (client, app, pilot):
        link = app.query_one("#link", Static)
        app.query_one(Composer).insert("a draft")
        client.is_gone = True
        await until(pilot, lambda: str(link.render()) == "Reconnecting …")
        client.is_gone = False
        await until(pilot, lambda: str(link.render()) == "Connected")
        assert app.query_one(Composer).text == "a draft"


def test_the_colours_follow_the_terminal() -> None:
    assert theme_for({}) == "textual-dark"
    assert theme_for({"COLORFGBG": "15;0"}) == "textual-dark"
    assert theme_for({"COLORFGBG": "0;15"}) == "textual-light"
    assert theme_for({"COLORFGBG": "0;default;7"}) == "textual-light"
    assert theme_for({"COLORFGBG": "0;15", "TEXTUAL_THEME": "ansi-dark"}) == "ansi-dark"


@pytest.mark.parametrize("theme", ["textual-light", "ansi-dark", "ansi-light"])
async def test_a_theme_of_the_terminals_own_colours_shows_everything(theme: str) -> None:
    async with open_app() as (client, app, pilot):
        app.theme = theme
        await write(pilot, "hello")
        await until(pilot, lambda: "Working" in state(app))
        client.reply("t1", "# done", client.sent[0][0])
        await until(pilot, lambda: "Your turn" in screen(app)[1])
        await until(pilot, lambda: any("done" in line for line in screen(app)))
