"""Agent Skills (agentskills.io): folders below `skills/` with a `SKILL.md`, as a plugin brings them."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from tiny_harness.errors import RegistryError
from tiny_harness.plugins.files import PluginFolder

SKILLS: Final = "skills"
SKILL_FILE: Final = "SKILL.md"
MAX_SKILLS: Final = 50
"""Of one plugin: the names and descriptions of all stand in every prompt."""
MAX_BODY_CHARS: Final = 64_000
"""A loaded skill stands in its task's prompt for good; the format advises a third of this."""
MAX_LISTED_FILES: Final = 200
_FIELDS: Final = frozenset({"name", "description", "license", "compatibility", "metadata", "allowed-tools"})


_NAME: Final = r"^[a-z0-9]+(?:-[a-z0-9]+)*$"
_MAX_NAME: Final = 64


class _Head(BaseModel):
    """The front matter (Agent Skills: specification)."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    name: Annotated[str, StringConstraints(pattern=_NAME, max_length=_MAX_NAME)]
    description: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=1_024)]
    license: str | None = Field(default=None, max_length=500)
    compatibility: str | None = Field(default=None, min_length=1, max_length=500)
    metadata: dict[str, str] = Field(default_factory=dict[str, str], max_length=50)
    allowed_tools: str = Field(default="", alias="allowed-tools", max_length=2_000)


@dataclass(frozen=True, slots=True)
class Skill:
    """What an agent can learn when it needs it.

    Raises:
        RegistryError: Its name is invalid.
    """

    name: str
    """That of its folder."""
    description: str
    """What it is for and when: all that a model knows of it before it loads it."""
    body: str
    """Its instructions, Markdown."""
    license: str | None = None
    compatibility: str | None = None
    """What it needs to work."""
    metadata: Mapping[str, str] = field(default_factory=dict[str, str])
    allowed_tools: tuple[str, ...] = ()
    """Tools that its author would allow. For people to read: it grants nothing."""
    root: Path | None = None
    """Its folder; `None` for one made in code."""
    files: tuple[str, ...] = ()
    """Its other files, relative to its folder, sorted."""

    def __post_init__(self) -> None:
        if len(self.name) > _MAX_NAME or not re.fullmatch(_NAME, self.name):
            raise RegistryError(
                "skill", self.name, f"must have 1 to {_MAX_NAME} of a-z, 0-9 and single hyphens between"
            )


def read_skill(plugin: PluginFolder, name: str) -> tuple[Skill, tuple[str, ...]]:
    """Read one skill.

    Args:
        plugin: The plugin's folder.
        name: Of the skill's folder below `skills/`.

    Returns:
        It, and the fields of its head that nobody reads.

    Raises:
        RegistryError: It is none, or leads out of its plugin.
        ValidationError: A field of its head is wrong.
    """
    from tiny_harness.plugins import front_matter  # late: most plugins have no skills, and need no YAML

    folder = _folder(plugin, name)
    text = folder.text(SKILL_FILE)
    if text is None:
        raise RegistryError("skill", name, f"has no {SKILL_FILE}")
    try:
        fields, body = front_matter.split(text)
    except ValueError as error:
        raise RegistryError("skill", name, f"{SKILL_FILE} {error}") from error
    head = _Head.model_validate(fields)
    if head.name != name:
        raise RegistryError("skill", name, f"calls itself {head.name!r}: it must have the name of its folder")
    if not 0 < len(body) <= MAX_BODY_CHARS:
        raise RegistryError("skill", name, f"must have 1 to {MAX_BODY_CHARS} characters below its head")
    skill = Skill(
        name=name,
        description=" ".join(head.description.split()),
        body=body,
        license=head.license,
        compatibility=head.compatibility,
        metadata=head.metadata,
        allowed_tools=tuple(head.allowed_tools.replace(",", " ").split()),
        root=folder.root,
        files=_files(folder.root),
    )
    return skill, tuple(str(key)[:100] for key in fields if key not in _FIELDS)


def read_file(skill: Skill, path: str) -> str:
    """Read a text file of a skill, as it is now.

    Args:
        skill: The skill.
        path: Relative to its folder.

    Raises:
        RegistryError: There is none, it leaves the skill's folder, is too large, or is not UTF-8.
    """
    text = PluginFolder(skill.root).text(path) if skill.root else None
    if text is None:
        raise RegistryError("file", path[:200], f"is not in the skill {skill.name!r}")
    return text


def fingerprint(skill: Skill) -> list[Any]:
    """List what tells it apart from others of its name."""
    return [skill.name, skill.description, skill.body, str(skill.root), list(skill.files)]


def _folder(plugin: PluginFolder, name: str) -> PluginFolder:
    """Open a skill's folder: what is read through it stays inside the skill, not only inside the plugin."""
    path = plugin.find(f"{SKILLS}/{name}", kind="folder")
    if path is None:
        raise RegistryError("skill", name, "is not there any more")
    return PluginFolder(path)


def _files(root: Path) -> tuple[str, ...]:
    """List what a model may ask for: regular files that are not hidden; follows no link to a folder."""
    found: list[str] = []
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if name != "__pycache__" and not name.startswith("."))
        names = (Path(folder, name) for name in files if not name.startswith("."))
        found += [path.relative_to(root).as_posix() for path in names]
        if len(found) > MAX_LISTED_FILES:
            break
    return tuple(sorted(name for name in found if name != SKILL_FILE)[:MAX_LISTED_FILES])
