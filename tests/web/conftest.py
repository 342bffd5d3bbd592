"""One browser and one harness for all tests of a file."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from playwright.async_api import Browser

from tests.served import Served, serving
from tests.web.browser import running_browser
from tiny_harness.demo import PLUGIN

SCRIPT = Path(__file__).with_name("script.toml")
ROOMY = {"rate_limit_per_minute": 1_000_000, "max_streams": 200}


@pytest.fixture(scope="session")
async def browser() -> AsyncGenerator[Browser]:
    async with running_browser() as browser:
        yield browser


@pytest.fixture(scope="session")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Served]:
    """A harness with the script of this folder; its own participant is ann."""
    async with serving(tmp_path_factory.mktemp("served") / "home", ROOMY, SCRIPT) as served:
        yield served


@pytest.fixture(scope="session")
async def shop(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Served]:
    """A harness that tells the demo's story."""
    async with serving(tmp_path_factory.mktemp("shop") / "home", ROOMY, plugins=[PLUGIN]) as served:
        yield served
