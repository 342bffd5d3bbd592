"""Notices that the terminal has gone, or that the process is asked to end."""

import asyncio
import signal
import sys
import termios
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final

ENDINGS: Final = (signal.SIGHUP, signal.SIGTERM)


@contextmanager
def ending_by_signal(leave: Callable[[], None]) -> Generator[None]:
    """Call `leave` when the process is asked to end, unless somebody else listens for that already."""
    loop = asyncio.get_running_loop()
    in_main = threading.current_thread() is threading.main_thread()
    ours = [number for number in ENDINGS if in_main and signal.getsignal(number) is signal.SIG_DFL]
    for number in ours:
        loop.add_signal_handler(number, leave)
    try:
        yield
    finally:
        for number in ours:
            loop.remove_signal_handler(number)


def is_terminal_lost() -> bool:
    """Whether the terminal behind the standard input has gone: it then fails, or reads as empty for ever."""
    stdin = sys.__stdin__
    if stdin is None or stdin.closed:
        return True
    try:
        termios.tcgetattr(stdin.fileno())
    except (termios.error, ValueError, OSError):
        return True
    return False
