"""Closes a port that a child of ours listens on and cannot be told not to (ADR 8).

Linux lets a parent have a copy of a child's socket; shutting the copy down ends the listening of both.
"""

import ctypes
import os
import socket
import sys
from pathlib import Path
from typing import Final

_PIDFD_GETFD: Final = 438
"""The system call's number, the same on every architecture (Linux 5.6)."""
_LISTENING: Final = "0A"


def close_listener(pid: int, port: int) -> bool:
    """End a child's listening on a loopback port; connections that are open stay.

    Returns:
        Whether it is closed. False where the system has no such call or does not allow it.
    """
    if sys.platform != "linux":
        return False
    try:
        handle = _find(pid, port)
        return handle is not None and _shut(pid, handle)
    except OSError:
        return False


def _find(pid: int, port: int) -> int | None:
    """Find the descriptor by which the child holds the listening socket."""
    for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[3] == _LISTENING and int(fields[1].rpartition(":")[2], 16) == port:
            wanted = f"socket:[{fields[9]}]"
            handles = Path(f"/proc/{pid}/fd").iterdir()
            return next((int(handle.name) for handle in handles if _target(handle) == wanted), None)
    return None


def _target(handle: Path) -> str:
    try:
        return os.readlink(handle)
    except OSError:  # closed since it was listed
        return ""


def _shut(pid: int, handle: int) -> bool:
    process = os.pidfd_open(pid)
    try:
        copy = ctypes.CDLL(None).syscall(_PIDFD_GETFD, process, handle, 0)
    finally:
        os.close(process)
    if copy < 0:
        return False
    with socket.socket(fileno=copy) as listener:
        listener.shutdown(socket.SHUT_RDWR)
    return True
