"""A child process that cannot outlive us."""

import asyncio
import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

_PR_SET_PDEATHSIG: Final = 1
# Loaded here, in the parent: between fork and exec nothing may be imported.
_LIBC: Final = ctypes.CDLL(None)

_WATCH_PIPE: Final = """
import os, signal, sys
child = os.fork()
if child == 0:
    os.execv(sys.argv[1], sys.argv[1:])
watcher = os.fork()
if watcher == 0:
    os.read(0, 1)
    os.kill(child, signal.SIGKILL)
    os._exit(0)
_, status = os.waitpid(child, 0)
os.kill(watcher, signal.SIGKILL)
sys.exit(os.waitstatus_to_exitcode(status) & 0xFF)
"""
"""For systems without a parent-death signal: kills the child when our end of its standard input closes."""


class Child:
    """A running child. It is killed when this process ends, however it ends."""

    def __init__(
        self,
        command: Sequence[str | Path],
        log: Path,
        env: Mapping[str, str],
        *,
        is_watched: bool = sys.platform != "linux",
    ) -> None:
        """Start it. Call from the main thread: on Linux the child's life is tied to the thread that started it.

        Args:
            command: What to run, by its full path.
            log: Where its output goes (0600), from the start of the file.
            env: Added to our environment.
            is_watched: Let a watcher at the end of a pipe kill it, instead of the kernel.
        """
        self._is_watched = is_watched
        words = [str(word) for word in command]
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _WATCH_PIPE, *words] if is_watched else words,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                env={**os.environ, **env},
                umask=0o077,
                start_new_session=True,  # a Ctrl-C at the terminal is for us; we end the child ourselves
                preexec_fn=None if is_watched else _die_with(os.getpid()),
            )
        finally:
            os.close(output)

    @property
    def pid(self) -> int:
        """Its process id; a watcher's, if one watches it."""
        return self._process.pid

    @property
    def exit_status(self) -> int | None:
        """Its exit status, negative for a signal; `None` while it runs."""
        return self._process.poll()

    async def kill(self) -> None:
        """Kill it, and wait for its end. Harmless when it has ended."""
        if not self._is_watched:
            self._process.kill()
        self._close_pipe()  # that is what makes a watcher kill it
        await asyncio.to_thread(self._process.wait)

    def forget(self) -> None:
        """Let go of one that has ended."""
        self._close_pipe()

    def _close_pipe(self) -> None:
        if self._process.stdin is not None:
            with suppress(OSError):
                self._process.stdin.close()


def _die_with(parent: int) -> Callable[[], None]:
    def prepare() -> None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it died before the signal was set
            os._exit(1)

    return prepare
