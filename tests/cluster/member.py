"""One process of a cluster: it is started, killed, told to stop, and started again where it was."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol

from tiny_harness.temporal.child import Child

PATIENCE_S: Final = 90
INTERVAL_S: Final = 0.05
RESTART_PAUSE_S: Final = 0.5
"""Before one that could not start is started again, as whoever runs containers does it."""

LOG_CHARS: Final = 3_000

Probe = Callable[[], Awaitable[bool]]


class Killable(Protocol):
    """What a fault is done to."""

    async def start(self) -> None: ...

    async def kill(self) -> None: ...


class Member:
    """A process with a probe that says when it is ready. It dies with us, however we end."""

    def __init__(
        self, name: str, command: Sequence[str | Path], folder: Path, probe: Probe, env: Mapping[str, str] | None = None
    ) -> None:
        """`folder` is where its output goes, a file for each of its lives."""
        self.name = name
        self._command = command
        self._folder = folder
        self._probe = probe
        self._env = env or {}
        self._lives = 0
        self._child: Child | None = None

    @property
    def log(self) -> str:
        """What all its lives have said."""
        files = [self._folder / f"{self.name}.{life}.log" for life in range(1, self._lives + 1)]
        return "".join(file.read_text(errors="replace") for file in files)

    @property
    def exit_status(self) -> int | None:
        """How it ended, negative for a signal; `None` while it runs."""
        assert self._child is not None
        return self._child.exit_status

    async def start(self) -> None:
        """Start it, again if it ends because a neighbour is not there yet, and wait until it is ready."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                await self._until_ready()
        except TimeoutError:
            raise AssertionError(f"{self.name} is not ready after {PATIENCE_S} s: {self.log[-LOG_CHARS:]}") from None

    async def _until_ready(self) -> None:
        self.spawn()
        while not await self._probe():
            if self.exit_status is not None:
                await asyncio.sleep(RESTART_PAUSE_S)
                self.spawn()
            await asyncio.sleep(INTERVAL_S)

    async def until_not_ready(self) -> None:
        """Wait until it says that it takes no work, or says nothing any more."""
        async with asyncio.timeout(PATIENCE_S):
            while await self._probe():  # noqa: ASYNC110 - a process sets no event
                await asyncio.sleep(INTERVAL_S)

    def spawn(self) -> None:
        """Start it and wait for nothing."""
        if self._child is not None:
            self._child.forget()
        self._lives += 1
        self._child = Child(self._command, self._folder / f"{self.name}.{self._lives}.log", self._env)

    async def until_ended(self) -> int:
        """Wait for its end; gives its exit status."""
        async with asyncio.timeout(PATIENCE_S):
            while (status := self.exit_status) is None:  # noqa: ASYNC110 - a process sets no event
                await asyncio.sleep(INTERVAL_S)
        return status

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        assert self._child is not None
        os.kill(self._child.pid, number)

    async def stop(self) -> int:
        """Let it drain; gives its exit status."""
        self.signal(signal.SIGTERM)
        return await self.until_ended()

    async def kill(self) -> None:
        """`kill -9`."""
        if self._child is not None:
            await self._child.kill()
