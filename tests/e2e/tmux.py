"""A program on a real terminal emulator: tmux, watched and resized by its control mode."""

import asyncio
import os
import uuid
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager

from rich.cells import cell_len

from tests.tools import require_tool

PATIENCE_S = 90


class Tmux:
    """One window with one program.

    Args:
        program: tmux.
        server: Name of a tmux server of its own.
        columns: The window's width.
    """

    def __init__(self, program: str, server: str, columns: int) -> None:
        self.columns = columns
        self._command = (program, "-L", server, "-f", os.devnull)
        self._news = asyncio.Event()
        self._client: Process | None = None
        self._reader: asyncio.Task[None] | None = None

    async def start(self, rows: int, command: Sequence[str], environ: dict[str, str]) -> None:
        """Open the window."""
        size = ("-x", str(self.columns), "-y", str(rows))
        env = {**os.environ, **environ}
        self._client = await asyncio.create_subprocess_exec(
            *(*self._command, "-C", "new-session", *size, *(f"-e{name}={env[name]}" for name in environ), *command),
            stdin=PIPE,
            stdout=PIPE,
            stderr=DEVNULL,
            env=env,
        )
        self._reader = asyncio.create_task(self._read())
        await self.resize(self.columns, rows)

    async def _read(self) -> None:
        assert self._client is not None
        assert self._client.stdout is not None
        while await self._client.stdout.readline():
            self._news.set()
        self._news.set()

    async def run(self, *words: str) -> str:
        """Run a tmux command; what it prints."""
        process = await asyncio.create_subprocess_exec(*self._command, *words, stdout=PIPE, stderr=DEVNULL)
        async with asyncio.timeout(PATIENCE_S):
            out, _ = await process.communicate()
        return out.decode()

    async def keys(self, *names: str) -> None:
        """Press keys by tmux's names."""
        await self.run("send-keys", *names)

    async def type(self, text: str) -> None:
        """Write a text and send it."""
        await self.run("send-keys", "-l", text)
        await self.keys("Enter")

    async def resize(self, columns: int, rows: int) -> None:
        """Give the window another size."""
        self.columns = columns
        await self.run("resize-window", "-x", str(columns), "-y", str(rows))

    async def screen(self) -> list[str]:
        """What stands on the screen, row by row."""
        return (await self.run("capture-pane", "-p")).rstrip("\n").split("\n")

    async def shows(self, *words: str) -> list[str]:
        """Wait until all words are on the screen; the screen."""
        return await self.until(lambda rows: all(word in "\n".join(rows) for word in words), repr(words))

    async def until(self, holds: Callable[[list[str]], bool], what: str) -> list[str]:
        """Wait until a screen is as it should be; the screen."""
        rows: list[str] = []
        try:
            async with asyncio.timeout(PATIENCE_S):
                while True:
                    self._news.clear()
                    rows = await self.screen()
                    if holds(rows):
                        return rows
                    await self._news.wait()
        except TimeoutError:
            raise AssertionError(f"{what} is not on the screen:\n" + "\n".join(rows)) from None

    async def ended(self) -> None:
        """Wait until the program has ended, and the window with it."""
        assert self._client is not None
        async with asyncio.timeout(PATIENCE_S):
            await self._client.wait()

    async def close(self) -> None:
        """End it all."""
        await self.run("kill-server")
        if self._client is not None:
            assert self._client.stdin is not None
            self._client.stdin.close()
            await self.ended()
        if self._reader is not None:
            await self._reader


@asynccontextmanager
async def on_terminal(columns: int, rows: int, command: Sequence[str], environ: dict[str, str]) -> AsyncGenerator[Tmux]:
    """Run a program on a terminal of so many columns and rows."""
    tmux = Tmux(require_tool("tmux"), f"tiny-harness-{uuid.uuid4().hex[:8]}", columns)
    await tmux.start(rows, command, environ)
    try:
        yield tmux
    finally:
        await tmux.close()


def too_wide(rows: list[str], columns: int) -> list[str]:
    """List the rows that take more cells than there are columns."""
    return [row for row in rows if cell_len(row) > columns]
