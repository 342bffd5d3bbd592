"""The home's run folder: where a live harness is found, and how it proves that it is one.

A host listens on a Unix socket that only its owner can reach. Its address stands in `run/host.json`; whether it lives
is told by connecting, so a file that a dead host left behind does no harm.
"""

import json
import os
import secrets
import socket
import stat
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from tiny_harness.address import Address
from tiny_harness.errors import ConfigError

SOCKET_URL: Final = "http://localhost"
"""What clients of the socket name as the host."""
MAX_SOCKET_PATH: Final = 100
"""Bytes; the kernel takes 107."""
PROBE_TIMEOUT_S: Final = 1.0
MIN_TOKEN_CHARACTERS: Final = 20
"""A shorter one was not made by us: the file was cut, or is something else."""


def run_folder(home: Path) -> Path:
    """Make and check the home's run folder (0700).

    Raises:
        ConfigError: It cannot be made, is a link, or belongs to somebody else.
    """
    folder = home / "run"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        check_owned(folder)
        folder.chmod(0o700)
    except OSError as error:
        raise ConfigError(f"cannot be used ({error.strerror})", file=str(folder)) from error
    return folder


def check_owned(path: Path) -> None:
    """Refuse what is a link or belongs to somebody else.

    Raises:
        ConfigError: It is.
    """
    found = path.lstat()
    if stat.S_ISLNK(found.st_mode):
        raise ConfigError("is a symbolic link", file=str(path))
    if found.st_uid != os.geteuid():
        raise ConfigError("belongs to another user", file=str(path))


def find_host(home: Path) -> Address | None:
    """Find the live harness of a home, if there is one. Makes nothing."""
    try:
        known = json.loads((home / "run" / "host.json").read_text())
        path = Path(known["socket"])
        # A dead host's note may name a folder in /tmp that somebody else has made anew.
        check_owned(path.parent)
        check_owned(path)
    except (OSError, ValueError, KeyError, TypeError, ConfigError):
        return None
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(PROBE_TIMEOUT_S)
        try:
            probe.connect(str(path))
        except OSError:
            return None
    return Address(SOCKET_URL, socket=path)


@contextmanager
def socket_path(run_dir: Path) -> Generator[Path]:
    """Choose where the socket goes: the run folder, or a private folder if that path is too long for a socket."""
    path = run_dir / "harness.sock"
    if len(os.fsencode(path)) <= MAX_SOCKET_PATH:
        try:
            yield path
        finally:
            path.unlink(missing_ok=True)
        return
    with tempfile.TemporaryDirectory(prefix="th-") as folder:
        yield Path(folder) / "harness.sock"


@contextmanager
def announced(run_dir: Path, path: Path, url: str | None) -> Generator[None]:
    """Let others find this harness while the block runs."""
    note = run_dir / "host.json"
    fresh = run_dir / "host.json.new"
    with suppress(FileNotFoundError):
        fresh.unlink()
    handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(handle, "w") as file:
        json.dump({"pid": os.getpid(), "socket": str(path), "url": url}, file)
    fresh.replace(note)
    try:
        yield
    finally:
        note.unlink(missing_ok=True)


def read_token(home: Path) -> str:
    """Read the token that clients on TCP show, making it (0600) at the first start.

    Raises:
        ConfigError: The file cannot be used, is a link, belongs to somebody else, or holds no token.
    """
    path = home / "token"
    try:
        return _make_token(path)
    except FileExistsError:
        return _read_token(path)
    except OSError as error:
        raise ConfigError(f"cannot be made ({error.strerror})", file=str(path)) from error


def _make_token(path: Path) -> str:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    token = secrets.token_urlsafe(32)
    with os.fdopen(handle, "w") as file:
        file.write(token + "\n")
    return token


def _read_token(path: Path) -> str:
    try:
        check_owned(path)
        path.chmod(0o600)
        token = path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot be read ({error})", file=str(path)) from error
    if len(token) < MIN_TOKEN_CHARACTERS:
        raise ConfigError("holds no token; remove it to have a new one made", file=str(path))
    return token
