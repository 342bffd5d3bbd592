"""Where the configuration is, and how a home is made that nobody else can read or redirect (R2, abuse cases 7 and 8).

Only the light part of the standard library, and our errors when one is raised: `--help` shows what this finds.
"""

import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from tiny_harness.errors import ConfigError

HOME_NAME: Final = ".tiny-harness"
FILE_NAME: Final = "config.toml"


class ConfigPath(NamedTuple):
    """The configuration file in effect."""

    path: Path
    is_default: bool
    """Whether it is the default one, not one that `--config` named."""

    @property
    def origin(self) -> str:
        """Where the choice comes from, in words."""
        return "the default location" if self.is_default else "--config"

    @property
    def exists(self) -> bool:
        """Whether it is there, as far as we may look."""
        return os.path.exists(self.path)  # `Path.exists` raises where we may not look


def default_home() -> Path:
    """Name the default home, `~/.tiny-harness`.

    Raises:
        ConfigError: `HOME` is no absolute path, or there is neither `HOME` nor an account: a home in the working
            directory or in `/` is nobody's wish.
    """
    try:
        user = Path.home() if os.environ.get("HOME", "/") else Path()
    except RuntimeError:
        user = Path()
    if not user.is_absolute():
        raise _refusal("HOME is no absolute path, so there is no home; set it, or name a file with --config")
    return user / HOME_NAME


def resolve_config(config: str | None = None) -> ConfigPath:
    """Find the configuration file in effect: the given one, else the default. Reads and makes nothing (R2.1)."""
    if config is not None:
        return ConfigPath(Path(config), is_default=False)
    return ConfigPath(default_home() / FILE_NAME, is_default=True)


def prepare_home(home: Path | None = None) -> Path | None:
    """Make a home (0700) and its configuration file (0600), or check the ones that are there.

    A configuration that is there is never changed (R2.6).

    Args:
        home: Default: `~/.tiny-harness`.

    Returns:
        The file, if this call made it.

    Raises:
        ConfigError: The home or something in it is a symbolic link or belongs to somebody else, others may write to
            the home, or it cannot be made.
    """
    home = default_home() if home is None else home
    try:
        home.mkdir(mode=0o700)
        is_new = True
    except FileExistsError:
        is_new = False
    except OSError as error:
        raise _refusal(f"cannot be created ({error.strerror})", file=str(home)) from error
    with _open_folder(home) as folder:
        if is_new:
            os.fchmod(folder, 0o700)  # a umask may have taken bits of the owner's
        is_made = FILE_NAME not in _check_entries(folder, home) and _make_file(folder, home)
    return home / FILE_NAME if is_made else None


def check_home(home: Path | None = None) -> None:
    """Check a home as `prepare_home` does, and make nothing. A missing home is fine.

    Raises:
        ConfigError: See `prepare_home`.
    """
    home = default_home() if home is None else home
    if os.path.lexists(home):
        with _open_folder(home) as folder:
            _check_entries(folder, home)


@contextmanager
def _open_folder(home: Path) -> Generator[int]:
    """Open the home so that nobody can put another in its place between check and use."""
    try:
        _check(home.lstat(), home)
        folder = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise _refusal(f"cannot be opened ({error.strerror})", file=str(home)) from error
    try:
        found = os.fstat(folder)
        _check(found, home)
        if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise _refusal("others may write to it; `chmod 700` makes it yours alone", file=str(home))
        yield folder
    finally:
        os.close(folder)


def _check_entries(folder: int, home: Path) -> list[str]:
    """Check what is in the home and list it: databases, log and token are opened by name later."""
    names = os.listdir(folder)
    for name in names:
        try:
            found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:  # a running harness has just removed it
            continue
        _check(found, home / name)
        if name == FILE_NAME and not stat.S_ISREG(found.st_mode):
            raise _refusal("is no file", file=str(home / name))
    return names


def _make_file(folder: int, home: Path) -> bool:
    from tiny_harness.config_file import default_config  # late: the text is needed once in a home's life

    # Written whole under another name first: nobody ever sees half a file, and the first of two starters wins.
    draft = f".{FILE_NAME}.{os.urandom(8).hex()}"
    try:
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=folder)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            os.fchmod(handle, 0o600)
            file.write(default_config(home))
        try:
            os.link(draft, FILE_NAME, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
        except FileExistsError:
            return False
        finally:
            os.unlink(draft, dir_fd=folder)
    except OSError as error:
        raise _refusal(f"cannot be created ({error.strerror})", file=str(home / FILE_NAME)) from error
    return True


def _refusal(reason: str, file: str = "") -> "ConfigError":
    from tiny_harness.errors import ConfigError

    return ConfigError(reason, file=file)


def _check(found: os.stat_result, path: Path) -> None:
    if stat.S_ISLNK(found.st_mode):
        raise _refusal("is a symbolic link; nothing is read or written through it", file=str(path))
    if found.st_uid != os.geteuid():
        raise _refusal("belongs to another user", file=str(path))
