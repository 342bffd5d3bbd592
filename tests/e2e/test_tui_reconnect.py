"""Two surfaces on one real harness: what one does the other shows at once, also over a `kill -9` of the gateway."""

import signal
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import OptionList, Static

from tests.e2e.process import running
from tests.unit.sdk.tui_pilot import screen, state, texts, until, write
from tiny_harness.client import Address, connect
from tiny_harness.states import TaskState
from tiny_harness.tui.app import HarnessApp
from tiny_harness.tui.composer import Composer
from tiny_harness.tui.picker import TaskPicker

pytestmark = pytest.mark.timeout(180)

TOLD_WITHIN_S = 5.0


@asynccontextmanager
async def surface(socket: Path, task_id: str | None = None) -> AsyncGenerator[tuple[HarnessApp, Pilot[None]]]:
    async with connect(Address("http://localhost", socket), "ann") as client:
        app = HarnessApp(client, task_id)
        async with app.run_test(size=(90, 30)) as pilot:
            yield app, pilot


def link(app: HarnessApp) -> str:
    return str(app.query_one("#link", Static).render())


async def test_a_killed_gateway_is_told_the_draft_is_kept_and_what_was_missed_is_shown_once(tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with running(home) as harness, surface(harness.socket) as (app, pilot):
        await write(pilot, "one")
        await until(pilot, lambda: texts(app) == ["one", "re: one"])
        await until(pilot, lambda: "Your turn" in state(app))
        app.query_one(Composer).insert("a draft")
        await harness.end(signal.SIGKILL)
        since = time.monotonic()
        await until(pilot, lambda: link(app) == "Reconnecting …")
        told_after = time.monotonic() - since
        async with running(home) as again:
            assert again.socket == harness.socket
            async with connect(Address("http://localhost", again.socket), "ann") as other:
                [task] = await other.tasks()
                await other.send("two", task_id=task.task_id)
                await until(pilot, lambda: link(app) == "Connected")
                await until(pilot, lambda: texts(app)[2:] == ["two", "re: two"])
                await other.complete(task.task_id)
                await until(pilot, lambda: "Completed" in state(app))
            assert texts(app) == ["one", "re: one", "two", "re: two"]
            assert app.query_one(Composer).text == "a draft"
        assert told_after < TOLD_WITHIN_S


async def test_what_one_surface_does_shows_on_the_other_and_in_its_list_without_a_reload(tmp_path: Path) -> None:
    async with running(tmp_path / "home") as harness, surface(harness.socket) as (ann, hers):
        await write(hers, "one")
        await until(hers, lambda: texts(ann) == ["one", "re: one"])
        async with connect(Address("http://localhost", harness.socket), "ann") as client:
            [task] = await client.tasks()
            async with surface(harness.socket, task.task_id) as (other, his):
                await until(his, lambda: texts(other) == ["one", "re: one"])
                await write(his, "two")
                await until(hers, lambda: texts(ann) == ["one", "re: one", "two", "re: two"])
                await hers.press("f4", "f5")
                await until(hers, lambda: isinstance(ann.screen, TaskPicker))
                listing = ann.screen.query_one(OptionList)
                await until(hers, lambda: listing.option_count == 1)
                await until(his, lambda: "Your turn" in state(other))
                await his.press("f2")
                await until(his, lambda: "Completed" in state(other))
                await until(hers, lambda: any("Completed" in row for row in screen(ann)))
                assert (await client.task(task.task_id)).state is TaskState.COMPLETED
