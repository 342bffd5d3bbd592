"""The terminal: how large it is, which colours suit it, that it has gone, or that the process is asked to end."""

import asyncio
import signal
import sys
import termios
import threading
from collections.abc import Callable, Generator, Mapping, MutableMapping
from contextlib import contextmanager
from typing import Final

ENDINGS: Final = (signal.SIGHUP, signal.SIGTERM)

LIGHT: Final = frozenset({"7", "15"})
"""Numbers of the white colours among the 16 of a terminal."""


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


def forget_size(environ: MutableMapping[str, str]) -> None:
    """Drop a size that the environment tells: it would count for more than the terminal's own, and never changes."""
    for name in ("COLUMNS", "LINES"):
        environ.pop(name, None)


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


def theme_for(environ: Mapping[str, str]) -> str:
    """Choose a theme: `$TEXTUAL_THEME`, else light or dark as the terminal says its background is. Pure.

    Terminals that say it do so in `$COLORFGBG`, such as `0;15`: black on white.
    """
    background = environ.get("COLORFGBG", "").rpartition(";")[2]
    return environ.get("TEXTUAL_THEME") or ("textual-light" if background in LIGHT else "textual-dark")
