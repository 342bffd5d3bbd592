"""A child process that cannot outlive us."""

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
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


def spawn(command: Sequence[str | Path], log: Path, env: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start a child that is killed when this process ends, however it ends.

    Call from the main thread: on Linux the child's life is tied to the thread that started it.

    Args:
        command: What to run.
        log: Where its output goes (0600), from the start of the file.
        env: Added to our environment.
    """
    words = [str(word) for word in command]
    watched = words if sys.platform == "linux" else [sys.executable, "-c", _WATCH_PIPE, *words]
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        return subprocess.Popen(
            watched,
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            env={**os.environ, **env},
            start_new_session=True,  # a Ctrl-C at the terminal is for us; we stop the child ourselves
            preexec_fn=_die_with(os.getpid()) if sys.platform == "linux" else None,
        )
    finally:
        os.close(output)


def _die_with(parent: int) -> Callable[[], None]:
    def prepare() -> None:
        os.umask(0o077)
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it died before the signal was set
            os._exit(1)

    return prepare
