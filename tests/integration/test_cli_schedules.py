"""`tiny-harness schedules delete` (R1.4)."""

import asyncio
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from tiny_harness.cli.main import main
from tiny_harness.host import run_folder
from tiny_harness.settings import Settings
from tiny_harness.temporal import open_temporal
from tiny_harness.temporal.schedules import ensure_heartbeat

pytestmark = pytest.mark.timeout(180)

PATIENCE_S = 90


async def delete(config: Path) -> tuple[int | None, str, str]:
    """Run the command: its status, output and errors."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tiny_harness", "schedules", "delete", "--json", "--config", str(config)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(PATIENCE_S):
        out, errors = await process.communicate()
    return process.returncode, out.decode(), errors.decode()


async def test_the_schedule_is_deleted_once_nobody_else_has_the_embedded_temporal(tmp_path: Path) -> None:
    config = tmp_path / "c.toml"
    config.write_text(f"model.provider = 'scripted'\nstore.sqlite_path = '{tmp_path / 'store.db'}'\n")
    settings = Settings.load(config)
    async with open_temporal(settings, run_folder(tmp_path)) as pending:
        await ensure_heartbeat(await pending.ready(), settings.temporal.task_queue, timedelta(hours=1))
        status, _, errors = await delete(config)
        assert (status, "in use" in errors) == (2, True)
    assert await delete(config) == (0, '{\n  "deleted": true\n}\n', "")
    assert await delete(config) == (0, '{\n  "deleted": false\n}\n', "")


def test_an_unknown_verb_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schedules", "make"]) == 2
    assert "delete" in capsys.readouterr().err
