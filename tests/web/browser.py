"""The page in a real Chromium, as a person has it: what it shows, and keys."""

import asyncio
import os
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from playwright.async_api import Browser, ConsoleMessage, Page, async_playwright, expect

from tests.served import Served
from tests.tools import require_tool

PATIENCE_MS: Final = 30_000
ARTIFACTS: Final = os.environ.get("TINY_HARNESS_SCREENSHOTS")
"""A folder for pictures of what the tests saw; none are kept without it."""
FLAGS: Final = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
WIDE: Final = {"viewport": {"width": 1280, "height": 800}}
PHONE: Final = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
SMALL_DARK: Final = {"viewport": {"width": 320, "height": 640}, "color_scheme": "dark"}
CONTEXTS: Final[dict[str, dict[str, Any]]] = {
    "1280-light": WIDE,
    "1280-dark": {**WIDE, "color_scheme": "dark"},
    "390-touch": PHONE,
    "320-dark": SMALL_DARK,
}

expect.set_options(timeout=PATIENCE_MS)


@asynccontextmanager
async def running_browser() -> AsyncGenerator[Browser]:
    """Run Chromium, without a window, while the block runs."""
    program = require_tool("chromium")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program, args=FLAGS)
        try:
            yield browser
        finally:
            await browser.close()


class Surface:
    """One tab with the page. Whatever the console complains of fails the test at the end of `opened`."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.complaints: list[str] = []
        self.may_complain: Callable[[str], bool] = lambda words: False
        page.on("console", self._hear)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and not self.may_complain(message.text):
            self.complaints.append(message.text)

    @property
    def state(self) -> Any:
        """The words of the state pill."""
        return self.page.locator("#state")

    @property
    def words(self) -> Any:
        """The composer."""
        return self.page.locator("#words")

    async def shows(self, *words: str) -> None:
        """Wait until the conversation has these words."""
        for text in words:
            await expect(self.page.locator("#items")).to_contain_text(text)

    async def is_in(self, words: str) -> None:
        """Wait until the state is told by exactly these words."""
        await expect(self.state).to_have_text(words)

    async def write(self, text: str) -> None:
        """Write a message and send it, by keys alone."""
        await expect(self.words).to_be_enabled()
        await self.words.focus()
        await self.page.keyboard.insert_text(text)
        await self.page.keyboard.press("Enter")

    async def texts(self) -> list[str]:
        """List what was said, oldest first."""
        return await self.page.locator("#items > article .body").all_text_contents()

    async def tab_to(self, selector: str) -> None:
        """Go to an element as somebody without a mouse does, and see that it shows where they are."""
        for _ in range(60):
            if await self.page.evaluate("(s) => document.activeElement?.matches(s) ?? false", selector):
                return
            await self.page.keyboard.press("Tab")
        raise AssertionError(f"{selector} is not reached by Tab")

    async def is_whole(self) -> None:
        """Nothing scrolls sideways, and state and composer are in sight."""
        widths = await self.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert widths[0] <= widths[1], widths
        for selector in ("#pill", "#composer"):
            box = await self.page.locator(selector).bounding_box()
            assert box is not None, selector
            assert box["width"] > 0, selector

    async def picture(self, name: str) -> None:
        """Keep a picture, where somebody wants them."""
        if ARTIFACTS:
            folder = Path(ARTIFACTS)
            await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
            await self.page.screenshot(path=folder / f"{re.sub(r'[^a-z0-9-]+', '-', name.lower())}.png")


@asynccontextmanager
async def opened(browser: Browser, served: Served, path: str | None = None, **context: Any) -> AsyncGenerator[Surface]:
    """Open the page in a profile of its own; by default as the address that `serve` prints does it."""
    profile = await browser.new_context(**(context or WIDE))
    try:
        surface = Surface(await profile.new_page())
        surface.page.set_default_timeout(PATIENCE_MS)
        await surface.page.goto(f"{served.url}/ui/" + (f"#token={served.token}" if path is None else path))
        if path is None:
            await expect(surface.words).to_be_enabled()
        yield surface
        assert surface.complaints == []
    finally:
        await profile.close()
