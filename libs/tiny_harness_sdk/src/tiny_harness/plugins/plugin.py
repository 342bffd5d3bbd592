"""A plugin: commands, executors, servers, skills and words under one name, made in code or read from a folder."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Final

from tiny_harness.commands.spec import CommandSpec
from tiny_harness.errors import RegistryError
from tiny_harness.hooks.declaration import RemoteDeclaration
from tiny_harness.hooks.executor import Executor
from tiny_harness.hooks.points import parse_point
from tiny_harness.plugins.report import Component, PluginReport
from tiny_harness.plugins.servers import Server
from tiny_harness.plugins.skills import Skill, fingerprint

PLUGIN_NAME: Final = re.compile(r"(?!.*(?:--|\.\.))[a-z0-9](?:[a-z0-9.-]{0,62}[a-z0-9])?")


@dataclass(frozen=True)
class Plugin:
    """What one plugin adds. `Plugin("policies", executors=[...])` makes one in code.

    Raises:
        RegistryError: The name is invalid, or an executor's point does not exist.
    """

    name: str
    """As of Agent Plugins 1.0."""
    version: str | None = None
    description: str = ""
    commands: tuple[CommandSpec, ...] = ()
    executors: tuple[Executor, ...] = ()
    """Those that run in this process, command bodies included."""
    remote: tuple[RemoteDeclaration, ...] = ()
    """Those that are somebody else's services."""
    servers: tuple[Server, ...] = ()
    """MCP servers whose tools the model may use."""
    skills: tuple[Skill, ...] = ()
    """What the model can learn when it needs it."""
    prompts: Mapping[str, str] = field(default_factory=dict[str, str])
    """Named texts."""
    system_prompt: str | None = None
    digest: str = ""
    """SHA-256 over its files; of one made in code, over what it declares."""
    root: Path | None = None
    """Its folder; `None` for one made in code."""
    components: tuple[Component, ...] = ()
    """What the loader found besides, and what it left out."""

    def __post_init__(self) -> None:
        check_plugin_name(self.name)
        for one in (*self.executors, *self.remote):
            parse_point(one.point)
        own = (one if one.plugin or one.is_builtin else replace(one, plugin=self.name) for one in self.executors)
        object.__setattr__(self, "executors", tuple(own))
        object.__setattr__(self, "commands", tuple(self.commands))
        object.__setattr__(self, "remote", tuple(self.remote))
        object.__setattr__(self, "skills", tuple(self.skills))
        object.__setattr__(self, "servers", tuple(replace(one, plugin=self.name) for one in self.servers))
        if not self.digest:
            object.__setattr__(self, "digest", _digest(self))

    @property
    def report(self) -> PluginReport:
        """How loading it went, as far as it has come."""
        broken = {part.name for part in self.components if part.kind == "executor"}
        executors = [one.name for one in (*self.executors, *self.remote) if one.name not in broken]
        loaded = [
            *(Component(kind="command", name=spec.name, state="loaded") for spec in self.commands),
            *(Component(kind="executor", name=name, state="loaded") for name in executors),
            *(Component(kind="mcp", name=one.name, state="loaded") for one in self.servers),
            *(Component(kind="skill", name=skill.name, state="loaded") for skill in self.skills),
            *(Component(kind="prompt", name=name, state="loaded") for name in self.prompts),
        ]
        if self.system_prompt is not None:
            loaded.append(Component(kind="system prompt", name="systemprompt.md", state="loaded"))
        return PluginReport(
            plugin=self.name,
            path=str(self.root) if self.root else None,
            version=self.version,
            digest=self.digest,
            state="loaded",
            components=(*loaded, *self.components),
        )


def check_plugin_name(name: str) -> None:
    """Refuse a name that Agent Plugins 1.0 (5.5) does not allow.

    Raises:
        RegistryError: It is invalid.
    """
    if not PLUGIN_NAME.fullmatch(name):
        rule = "must have 1 to 64 of a-z, 0-9, - and ., with a letter or digit at both ends, and neither -- nor .."
        raise RegistryError("plugin", name, rule)


def _digest(plugin: Plugin) -> str:
    """Tell apart two plugins made in code by what they declare: their code itself has no bytes to count."""
    declared = [
        plugin.name,
        plugin.version,
        [spec.model_dump() for spec in plugin.commands],
        [[one.name, one.point, one.command, one.priority, one.deadline_s, one.on_failure] for one in plugin.executors],
        [[one.name, one.point, one.command, one.priority, one.url] for one in plugin.remote],
        [asdict(one) for one in plugin.servers],
        [fingerprint(skill) for skill in plugin.skills],
        dict(plugin.prompts),
        plugin.system_prompt,
    ]
    return hashlib.sha256(json.dumps(declared, sort_keys=True, default=str).encode()).hexdigest()
