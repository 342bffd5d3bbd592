"""A third party's service: `tiny-harness hooks serve` as a process, on one port, to be killed and started again."""

import asyncio
import os
import signal
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from tests.e2e.home import KEYS, PATIENCE_S
from tests.served import ROOT


@dataclass
class Service:
    """A service. It runs while the block runs, but for when it is killed or stopped in it."""

    app: str
    """`MODULE:APP`."""
    log: Path
    """Where its bodies say that they were called."""
    folder: Path = ROOT
    """Where the module is."""
    port: int = 0
    """0 until the first start."""
    _process: asyncio.subprocess.Process | None = field(default=None, repr=False)

    async def __aenter__(self) -> Self:
        """Start it."""
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop it, whatever it is about."""
        await self.kill()

    @property
    def is_running(self) -> bool:
        """Whether it is there, frozen or not."""
        return self._process is not None and self._process.returncode is None

    @property
    def url(self) -> str:
        """Where it takes calls; the same in each of its lives."""
        return f"http://127.0.0.1:{self.port}/rpc"

    @property
    def witnessed(self) -> list[str]:
        """What its bodies have said, a line each."""
        return self.log.read_text().splitlines() if self.log.exists() else []

    async def start(self) -> None:
        """Start it, where it was before."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tiny_harness", "hooks", "serve", self.app, "--bind", f"127.0.0.1:{self.port}"),
            cwd=self.folder,
            env={**os.environ, **KEYS, "E2E_LOG": str(self.log)},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        self._process = process
        assert process.stdout is not None
        async with asyncio.timeout(PATIENCE_S):
            said, _, url = (await process.stdout.readline()).decode().strip().partition(" ")
        assert said == "serving"
        self.port = int(url.removesuffix("/rpc").rpartition(":")[2])

    async def kill(self) -> None:
        """`kill -9`, with whatever is called in it."""
        assert self._process is not None
        if self._process.returncode is None:
            self._process.kill()
        async with asyncio.timeout(PATIENCE_S):
            await self._process.wait()

    def freeze(self) -> None:
        """Let it take calls and answer none: the kernel goes on accepting connections for it."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    async def until(self, line: str) -> None:
        """Wait until one of its bodies has said something."""
        async with asyncio.timeout(PATIENCE_S):
            while line not in self.witnessed:  # noqa: ASYNC110 - another process's file
                await asyncio.sleep(0.02)
