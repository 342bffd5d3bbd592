"""One harness in a process of its own for all tests of this folder, reached over TCP as any client reaches it."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.served import Served, serving

SCRIPT = Path(__file__).with_name("script.toml")


def pytest_configure(config: pytest.Config) -> None:
    """Declare the mark of the tests that wait because waiting is what they test."""
    config.addinivalue_line("markers", "slow: takes 20 s and more of doing nothing")


@pytest.fixture(scope="session")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Served]:
    """A harness with the script of this folder; its own participant is ann."""
    home = tmp_path_factory.mktemp("served") / "home"
    async with serving(home, {"rate_limit_per_minute": 100_000, "max_streams": 200}, SCRIPT) as served:
        yield served
