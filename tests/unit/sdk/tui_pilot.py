"""What the tests of the full-screen surface press, wait for and read."""

import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import cast

from textual.pilot import Pilot
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

PATIENCE_S = 10


@asynccontextmanager
async def open_app() -> AsyncGenerator[tuple[FakeClient, HarnessApp, Pilot[None]]]:
    client = FakeClient()
    app = HarnessApp(client.as_client())
    async with app.run_test(size=(90, 30)) as pilot:
        yield client, app, pilot


async def until(pilot: Pilot[None], holds: Callable[[], bool]) -> None:
    """Let the app work until something holds."""
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        app = cast(HarnessApp, pilot.app)
        assert time.monotonic() < deadline, f"shown instead: {texts(app)}, {state(app)}, {notice(app)!r}"
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
