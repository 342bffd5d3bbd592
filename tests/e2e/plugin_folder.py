"""Writes plugin folders, right and wrong ones."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tiny_harness.ext.names import METADATA_BASE

SCHEMA: Final = "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json"

Json = dict[str, Any]


def write_plugin(
    folder: Path,
    *,
    name: str | None = None,
    manifest: Mapping[str, Any] | None = None,
    commands: Sequence[Json] = (),
    executors: Sequence[Json] = (),
    code: str = "",
) -> Path:
    """Write a plugin.

    Args:
        folder: Where; its last part is the plugin's name unless another is given.
        name: Its name in the manifest.
        manifest: Fields of the manifest beside the schema and the name; may replace them.
        commands: Entries of `commands.json`.
        executors: Entries of `hooks.json`.
        code: `hooks.py`.
    """
    ours = folder / METADATA_BASE
    ours.mkdir(parents=True)
    _write(folder / "plugin.json", {"$schema": SCHEMA, "name": name or folder.name, **(manifest or {})})
    _write(ours / "commands.json", {"commands": list(commands)})
    _write(ours / "hooks.json", {"executors": list(executors)})
    (ours / "hooks.py").write_text(code)
    return folder


def body(command: str, where: str, **more: Any) -> Json:
    """Make the entry of a command's body: a function such as `hooks.py:note`, or a service's address."""
    return at("command.invoked.in", where, command=command, **{"name": command, **more})


def at(point: str, where: str, **more: Any) -> Json:
    """Make the entry of an executor at a point."""
    return {"name": point, "point": point, "url" if "://" in where else "python": where, **more}


def _write(path: Path, document: Json) -> None:
    path.write_text(json.dumps(document))
