"""Nothing outlives the process that hosts a hub, however that ends."""

import asyncio
import signal
import sys
from pathlib import Path

import pytest

from tests.integration.tools.conftest import PATIENCE_S, SERVERS, is_alive, lines, until

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
async def test_no_child_outlives_its_host(tmp_path: Path, number: signal.Signals) -> None:
    command = (sys.executable, str(SERVERS / "host.py"), str(tmp_path))
    host = await asyncio.create_subprocess_exec(
        *command,
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT)},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        assert host.stdout is not None
        async with asyncio.timeout(PATIENCE_S):
            assert await host.stdout.readline() == b"['up', 'up']\n"
        pids = [int(line) for line in lines(tmp_path / "pids")]
        assert len(pids) == 3  # a server, the child that it started, and another server
        assert all(map(is_alive, pids))
        host.send_signal(number)
        await host.wait()
        await until(lambda: not any(map(is_alive, pids)))
    finally:
        if host.returncode is None:
            host.kill()
            await host.wait()
