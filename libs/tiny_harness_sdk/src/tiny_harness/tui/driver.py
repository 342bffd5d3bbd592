"""Writes to a terminal that may go away at any time."""

import sys
from contextlib import suppress
from typing import IO, Any

from textual.drivers.linux_driver import LinuxDriver


class LastingDriver(LinuxDriver):
    """Textual's own, but for a terminal that has gone: what is written to it is dropped.

    Textual's thread that writes dies of the error, and the application then waits for ever to hand over more.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._file: Any = Lasting(sys.__stderr__)


class Lasting:
    """A file that takes everything, also when what is behind it has gone."""

    def __init__(self, file: IO[str] | None) -> None:
        self._file = file

    def write(self, text: str) -> int:
        """Write, or drop the text."""
        with suppress(OSError, ValueError):
            if self._file:
                self._file.write(text)
        return len(text)

    def flush(self) -> None:
        """Write out, or drop what is left."""
        with suppress(OSError, ValueError):
            if self._file:
                self._file.flush()

    def fileno(self) -> int:
        """Give the file's number."""
        return self._file.fileno() if self._file else -1
