"""A plugin's folder: the only way to its files. Nothing is read that is not inside it (Agent Plugins 1.0, 4.1)."""

import hashlib
import json
import os
import stat
from pathlib import Path, PurePosixPath
from typing import Any, Final

from tiny_harness.errors import RegistryError

MAX_FILES: Final = 10_000
MAX_TOTAL_BYTES: Final = 100 * 1024 * 1024
MAX_TEXT_BYTES: Final = 256 * 1024
"""What one file that we read ourselves may have."""
_NOT_COUNTED: Final = "__pycache__"


class PluginFolder:
    """Reads files of one plugin."""

    def __init__(self, root: Path) -> None:
        """Take a folder.

        Raises:
            RegistryError: It cannot be read as one.
        """
        try:
            self.root = root.resolve(strict=True)
        except (OSError, RuntimeError) as error:
            raise RegistryError("plugin", root.name, f"cannot be read: {_why(error)}") from error
        if not self.root.is_dir():
            raise RegistryError("plugin", root.name, "is not a folder")

    def find(self, name: str, *, kind: str = "file") -> Path | None:
        """Find a file or folder by its name relative to the root; `None` if there is none.

        Args:
            name: With `/` between its parts.
            kind: `file` or `folder`, which it must be.

        Raises:
            RegistryError: The name or what it leads to leaves the plugin, or is something else.
        """
        parts = PurePosixPath(name).parts
        if not parts or name.startswith("/") or ".." in parts or "\\" in name or "\0" in name:
            raise RegistryError("file", name, "must be a relative path inside the plugin")
        path = self.root.joinpath(*parts)
        try:
            if not os.path.lexists(path):
                return None
            found = path.resolve(strict=True)
            mode = found.stat().st_mode
        except (OSError, RuntimeError) as error:
            raise RegistryError("file", name, f"cannot be read: {_why(error)}") from error
        if not found.is_relative_to(self.root):
            raise RegistryError("file", name, "leads out of the plugin")
        if not (stat.S_ISREG(mode) if kind == "file" else stat.S_ISDIR(mode)):
            raise RegistryError("file", name, f"is not a {kind}")
        return found

    def text(self, name: str) -> str | None:
        """Read a small UTF-8 file; `None` if there is none.

        Raises:
            RegistryError: It leaves the plugin, is too large, or is not UTF-8.
        """
        path = self.find(name)
        if path is None:
            return None
        try:
            with path.open("rb") as file:
                content = file.read(MAX_TEXT_BYTES + 1)
            if len(content) > MAX_TEXT_BYTES:
                raise RegistryError("file", name, f"has more than {MAX_TEXT_BYTES // 1024} kB")
            return content.decode()
        except OSError as error:
            raise RegistryError("file", name, f"cannot be read: {_why(error)}") from error
        except UnicodeDecodeError as error:
            raise RegistryError("file", name, "is not UTF-8") from error

    def document(self, name: str) -> dict[str, Any] | None:
        """Read a JSON object; `None` if there is no such file.

        Raises:
            RegistryError: It cannot be read, is not JSON, or not an object.
        """
        text = self.text(name)
        if text is None:
            return None
        try:
            document = json.loads(text, object_pairs_hook=_without_twins)
        except (ValueError, RecursionError) as error:
            raise RegistryError("file", name, f"is not valid JSON: {error}") from error
        if not isinstance(document, dict):
            raise RegistryError("file", name, "must hold a JSON object")
        return document

    def names(self, folder: str) -> list[str]:
        """List what is in a folder, sorted; empty if there is none.

        Raises:
            RegistryError: It leaves the plugin or is no folder.
        """
        path = self.find(folder, kind="folder")
        try:
            return sorted(os.listdir(path)) if path else []
        except OSError as error:
            raise RegistryError("file", folder, f"cannot be read: {_why(error)}") from error

    def digest(self) -> str:
        """SHA-256 over the names and bytes of all files, but for hidden ones and Python's caches.

        Raises:
            RegistryError: They are too many or too large, or cannot be read.
        """
        total, count, digest = 0, 0, hashlib.sha256()
        try:
            for path in self._files():
                content = os.readlink(path).encode() if path.is_symlink() else _bytes(path, MAX_TOTAL_BYTES - total)
                count, total = count + 1, total + len(content)
                if count > MAX_FILES or total > MAX_TOTAL_BYTES:
                    limit = f"more than {MAX_FILES} files or {MAX_TOTAL_BYTES // 1024 // 1024} MB"
                    raise RegistryError("plugin", self.root.name, f"has {limit}")
                name = path.relative_to(self.root).as_posix().encode("utf-8", "surrogateescape")
                digest.update(b"%d:%s%d:" % (len(name), name, len(content)) + content)
        except OSError as error:
            raise RegistryError("plugin", self.root.name, f"cannot be read: {_why(error)}") from error
        return digest.hexdigest()

    def _files(self) -> list[Path]:
        """List regular files and symbolic links, in the order of their names; follows no link."""
        found: list[Path] = []
        for folder, folders, files in os.walk(self.root, onerror=_raise):
            links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
            folders[:] = [name for name in folders if name != _NOT_COUNTED and not name.startswith(".")]
            found += [Path(folder, name) for name in (*files, *links) if not name.startswith(".")]
            if len(found) > MAX_FILES:
                break
        return sorted(path for path in found if path.is_symlink() or path.is_file())


def _bytes(path: Path, limit: int) -> bytes:
    """Read a file, one byte beyond the limit at most."""
    with path.open("rb") as file:
        return file.read(limit + 1)


def _raise(error: OSError) -> None:
    raise error


def _why(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse an object with a key that is there twice: readers disagree about which one counts."""
    document: dict[str, Any] = {}
    for key, value in pairs:
        if key in document:
            raise ValueError(f"the key {key!r} is there twice")
        document[key] = value
    return document
