"""The terminal surfaces as processes: on a pseudo-terminal that can go away, and on pipes."""

import asyncio
import os
import pty
import re
import signal
import sys
import termios
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.integration.fake_gateway import FakeGateway, serving

pytestmark = pytest.mark.timeout(60)

PATIENCE_S = 20

TUI = """
import asyncio, fcntl, os, sys, termios
from pathlib import Path
from tiny_harness.client import Address
from tiny_harness.tui.app import run_tui
os.setsid()
if sys.argv[2] == "controlling":
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
asyncio.run(run_tui(Address("http://localhost", Path(sys.argv[1])), "ann"))
"""

PLAIN = """
import asyncio, sys
from pathlib import Path
from tiny_harness.client import Address
from tiny_harness.tui.plain import run_plain
sys.exit(asyncio.run(run_plain(Address("http://localhost", Path(sys.argv[1])), "ann", sys.stdin, sys.stdout)))
"""


class Terminal:
    """A pseudo-terminal with a process on it."""

    def __init__(self, master: int, process: Process) -> None:
        self.process = process
        self._master = master
        self._screen = bytearray()
        self._news = asyncio.Event()
        asyncio.get_running_loop().add_reader(master, self._read)

    async def shows(self, text: str) -> None:
        """Wait until a text was written to the screen."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                while text.encode() not in self._screen:
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            shown = re.sub(rb"\x1b\[[0-9;?<>]*[a-zA-Z]| +", b" ", self._screen)
            pytest.fail(f"{text!r} is not in {shown[-2_000:]!r}")

    def type(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def close(self) -> None:
        """Take the terminal away."""
        if self._master >= 0:
            asyncio.get_running_loop().remove_reader(self._master)
            os.close(self._master)
            self._master = -1

    async def ended(self) -> int:
        async with asyncio.timeout(PATIENCE_S):
            return await self.process.wait()

    def _read(self) -> None:
        try:
            self._screen += os.read(self._master, 65_536)
        except OSError:
            asyncio.get_running_loop().remove_reader(self._master)
        self._news.set()


@asynccontextmanager
async def open_tui(socket: Path, kind: str) -> AsyncGenerator[Terminal]:
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, (30, 100))
    environment = {**os.environ, "TERM": "xterm-256color", "NO_COLOR": "1"}
    try:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", TUI, str(socket), kind, stdin=slave, stdout=slave, stderr=slave, env=environment
        )
    finally:
        os.close(slave)
    terminal = Terminal(master, process)
    try:
        yield terminal
    finally:
        terminal.close()
        if process.returncode is None:
            process.kill()
            await process.wait()


async def test_a_person_holds_a_conversation_and_leaves(tmp_path: Path) -> None:
    gateway = FakeGateway()
    async with serving(gateway, tmp_path / "s"), open_tui(tmp_path / "s", "controlling") as terminal:
        await terminal.shows("Type a message")
        terminal.type("hello\r")
        await terminal.shows("echo: hello")
        await terminal.shows("Your turn")
        terminal.type("\x11")
        assert await terminal.ended() == 0
    assert len(gateway.tasks["t1"].history) == 2


async def test_a_command_is_completed_and_run_by_keys(tmp_path: Path) -> None:
    async with serving(FakeGateway(), tmp_path / "s"), open_tui(tmp_path / "s", "controlling") as terminal:
        await terminal.shows("Type a message")
        terminal.type("/")
        await terminal.shows("Show where the task stands")
        terminal.type("st\t\r")
        await terminal.shows("status: done")
        await terminal.shows("Your turn")


@pytest.mark.parametrize("kind", ["controlling", "without a signal"])
async def test_a_lost_terminal_ends_the_process(tmp_path: Path, kind: str) -> None:
    async with serving(FakeGateway(), tmp_path / "s"), open_tui(tmp_path / "s", kind) as terminal:
        await terminal.shows("Type a message")
        terminal.close()
        await terminal.ended()


async def test_a_signal_to_end_leaves_the_terminal_as_it_was(tmp_path: Path) -> None:
    async with serving(FakeGateway(), tmp_path / "s"), open_tui(tmp_path / "s", "controlling") as terminal:
        await terminal.shows("Type a message")
        terminal.process.send_signal(signal.SIGTERM)
        assert await terminal.ended() == 0
        await terminal.shows("\x1b[?1049l")


async def test_lines_on_a_pipe_are_answered_on_a_pipe(tmp_path: Path) -> None:
    async with serving(FakeGateway(), tmp_path / "s"), asyncio.timeout(PATIENCE_S):
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", PLAIN, str(tmp_path / "s"), stdin=PIPE, stdout=PIPE
        )
        out, _ = await process.communicate(b"one\ntwo\n")
    assert (process.returncode, out.decode()) == (0, "echo: one\necho: two\n")


async def test_commands_on_a_pipe_are_answered_and_a_refusal_is_the_status(tmp_path: Path) -> None:
    async with serving(FakeGateway(), tmp_path / "s"), asyncio.timeout(PATIENCE_S):
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", PLAIN, str(tmp_path / "s"), stdin=PIPE, stdout=PIPE
        )
        out, _ = await process.communicate(b"/status\n/secret\n/status\n")
    assert (process.returncode, out.decode()) == (1, "status: done\nerror: secret: refused\nstatus: done\n")
