"""Where a harness can be reached."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Address:
    """A harness's address, as a client needs it."""

    url: str
    """Base URL, such as `http://127.0.0.1:8080`."""
    socket: Path | None = None
    """Unix socket to reach it through; the URL then only names the host."""
    token: str | None = None
    """Bearer token, if one is needed."""
