"""One owner per thing: a lock that dies with its process, and says who holds it."""

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from tiny_harness.errors import AlreadyRunning, ConfigError


@contextmanager
def hold_lock(path: Path, what: str) -> Generator[None]:
    """Hold a lock file (0600) while the block runs; one that a dead process left behind is taken over.

    Args:
        path: The lock file; it stays on disk.
        what: What the lock stands for, for errors.

    Raises:
        AlreadyRunning: Another process holds it.
        ConfigError: The file cannot be made.
    """
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise ConfigError(f"cannot be opened ({error.strerror})", file=str(path)) from error
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise AlreadyRunning(what, _read_pid(handle)) from None
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
        yield
        os.ftruncate(handle, 0)
    finally:
        with suppress(OSError):
            os.close(handle)


def _read_pid(handle: int) -> int:
    text = os.pread(handle, 32, 0).decode("ascii", "replace").strip()
    return int(text) if text.isdecimal() else 0
