"""Both surfaces on one real harness: what one does the other shows at once, without a reload (R5, R6.7, R9.4)."""

import json
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.async_api import Browser, expect

from tests.served import Served, serving
from tests.unit.sdk.tui_pilot import screen, state, texts, until, write
from tests.web.browser import Surface, opened
from tiny_harness.client import Address, connect
from tiny_harness.tui.app import HarnessApp

pytestmark = pytest.mark.timeout(180)

HERE = Path(__file__).parent
HURRY: Final[dict[str, Any]] = {
    "quiet_minutes": 0.05,
    "ladder_minutes": [0.05],
    "stalled_after_minutes": 0.05,
    "warn_hours": [0.005],
    "expire_hours": 0.007,
}
"""The ladder in seconds: reminded after 3 and 6, stalled after 9, warned after 18, expired after 25."""


async def open_task(page: Surface, task_id: str) -> None:
    """Open a task on the page, as a link to it does."""
    await page.page.evaluate("location.hash = " + json.dumps(f"#/t/{task_id}"))


async def test_what_one_surface_does_the_other_shows_and_its_list_too(browser: Browser, served: Served) -> None:
    async with (
        opened(browser, served) as page,
        connect(Address(served.url, token=served.token), "ann") as client,
    ):
        app = HarnessApp(client)
        async with app.run_test(size=(100, 40)) as pilot:
            await write(pilot, "from the terminal")
            await until(pilot, lambda: texts(app) == ["from the terminal", "1: from the terminal"])
            [task] = [task for task in await client.tasks() if task.name == "from the terminal"]
            line = page.page.locator(f'#task-list a[href="#/t/{task.task_id}"]')
            await expect(line).to_contain_text("Input required · Your turn")
            await line.click()
            await page.shows("1: from the terminal")

            await page.write("from the page")
            await until(pilot, lambda: texts(app)[2:] == ["from the page", "2: from the page"])
            await page.write("/sub-task look into it")
            await page.shows("is open and")
            await until(pilot, lambda: any("Sub-task" in row for row in screen(app)))

            await page.page.locator(".children a").click()
            await expect(page.page.locator("#parent")).to_contain_text("from the terminal")
            await pilot.press("f8")
            await until(pilot, lambda: any("Part of" in row for row in screen(app)))
            await page.page.locator("#complete").click()
            await page.is_in("Completed")
            await until(pilot, lambda: "Completed" in state(app))

            await page.page.go_back()
            await pilot.press("f9")
            await until(pilot, lambda: "Your turn" in state(app))
            await pilot.press("f2")
            await page.is_in("Completed")
            await expect(line).to_contain_text("Completed")


async def test_a_turn_that_one_surface_stops_stops_on_the_other(browser: Browser, served: Served) -> None:
    async with (
        opened(browser, served) as page,
        connect(Address(served.url, token=served.token), "ann") as client,
    ):
        await page.write("take your time")
        await page.is_in("Working")
        app = HarnessApp(client, page.page.url.rpartition("/")[2])
        async with app.run_test(size=(100, 40)) as pilot:
            await until(pilot, lambda: "Working" in state(app))
            await pilot.press("escape")
            await page.is_in("Input required · Your turn")
            await page.write("take your time again")
            await until(pilot, lambda: "Working" in state(app))
            await expect(page.page.locator("#send")).to_have_text("Stop")
            await page.page.locator("#send").click()
            await until(pilot, lambda: "Your turn" in state(app))


async def test_both_say_how_a_supervised_task_stands_with_its_worker(browser: Browser, tmp_path: Path) -> None:
    async with (
        serving(tmp_path / "home", {}, HERE / "script.toml", supervision=HURRY) as hurried,
        opened(browser, hurried) as page,
        connect(Address(hurried.url, token=hurried.token), "ann") as client,
    ):
        task = await client.give("paint the fence", "bob")
        queued = await client.give("paint the door", "bob")
        app = HarnessApp(client, task.task_id)
        async with app.run_test(size=(100, 40)) as pilot:
            await open_task(page, queued.task_id)
            await page.is_in("Queued · place 1 in the queue")
            await open_task(page, task.task_id)
            for words in ("reminded once", "stalled", "about to expire", "Canceled", "expired"):
                await expect(page.state).to_contain_text(words)
                await until(pilot, lambda words=words: words in state(app))
            await open_task(page, queued.task_id)
            await expect(page.state).not_to_contain_text("in the queue")
