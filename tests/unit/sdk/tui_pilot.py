"""What the tests of the full-screen surface press, wait for and read."""

import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import cast

from rich.cells import cell_len
from textual.pilot import Pilot
from textual.widget import Widget
from textual.widgets import Markdown, OptionList, Static

from tests.unit.sdk.fake_client import FakeClient
from tiny_harness.tui.app import HarnessApp
from tiny_harness.tui.completions import Completions
from tiny_harness.tui.composer import Composer
from tiny_harness.tui.conversation import Conversation
from tiny_harness.tui.family import Family
from tiny_harness.tui.lines import Notice
from tiny_harness.tui.question import QuestionPanel
from tiny_harness.tui.words import HarnessWords, Note, ToolLine, Words

PATIENCE_S = 20


@asynccontextmanager
async def open_app(
    size: tuple[int, int] = (90, 30), client: FakeClient | None = None, task_id: str | None = None
) -> AsyncGenerator[tuple[FakeClient, HarnessApp, Pilot[None]]]:
    """Show the surface on a screen of so many columns and rows."""
    client = client or FakeClient()
    app = HarnessApp(client.as_client(), task_id)
    async with app.run_test(size=size) as pilot:
        yield client, app, pilot


async def until(pilot: Pilot[None], holds: Callable[[], bool], shown: Callable[[], object] | None = None) -> None:
    """Let the app work until something holds; else tell what is `shown`."""
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        app = cast(HarnessApp, pilot.app)
        told = shown or (lambda app=app: f"{texts(app)}, {state(app)}, {notice(app)!r}")
        assert time.monotonic() < deadline, f"shown instead: {told()}"
        await pilot.pause()


async def write(pilot: Pilot[None], text: str) -> None:
    """Type a message and send it."""
    pilot.app.query_one(Composer).insert(text)
    await pilot.press("enter")
    await pilot.pause()


def state(app: HarnessApp) -> str:
    return str(app.query_one("#state", Static).render())


def notice(app: HarnessApp) -> str:
    return app.query_one(Notice).words


def family(app: HarnessApp) -> tuple[str, ...]:
    return app.query_one(Family).lines


def question(app: HarnessApp) -> tuple[str, list[str]] | None:
    """What the panel asks and offers; `None` if it is closed."""
    panel = app.query_one(QuestionPanel)
    if not panel.has_class("open"):
        return None
    listing = panel.query_one(OptionList)
    choices = [str(listing.get_option_at_index(index).prompt) for index in range(listing.option_count)]
    return str(panel.query_one("#question-words", Static).render()), choices


def offered(app: HarnessApp) -> list[str]:
    """What the list of commands shows."""
    listing = app.query_one(Completions)
    return [str(listing.get_option_at_index(index).prompt) for index in range(listing.option_count)]


def texts(app: HarnessApp) -> list[str]:
    """What the conversation shows, from top to bottom."""
    return [_text(child) for child in app.query_one(Conversation).children]


def _text(widget: object) -> str:
    if isinstance(widget, Markdown):
        return widget.source
    assert isinstance(widget, Words | HarnessWords | Note | ToolLine)
    return str(widget.render())


def enabled(app: HarnessApp) -> set[str]:
    return {found.binding.action for found in app.active_bindings.values() if found.enabled}


def dimmed(app: HarnessApp) -> set[str]:
    return {found.binding.action for found in app.active_bindings.values() if not found.enabled}


def screen(app: HarnessApp) -> list[str]:
    """What is on the screen, row by row, in the state of the last drawing."""
    strips = app.screen._compositor.render_strips(app.size)  # pyright: ignore[reportPrivateUsage] - no public way
    return [strip.text for strip in strips]


def misfits(app: HarnessApp) -> list[str]:
    """What breaks a screen: lines that are too wide, and widgets that are shown without any width."""
    width = app.size.width
    lines = [line for line in screen(app) if cell_len(line) != width]
    shown = [widget for widget in app.screen.walk_children(Widget) if widget.is_on_screen and widget.display]
    return lines + [repr(widget) for widget in shown if widget.region.width == 0 and widget.size.height > 0]
