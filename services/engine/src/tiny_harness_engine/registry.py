"""The registry: everything that the engine may call by a name, one table per kind, frozen before work (DESIGN: hooks).

A second entry of a name is refused unless it says that it overrides the first.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Generic, Literal, TypeVar

from tiny_harness.commands import CommandRegistry, CommandSpec
from tiny_harness.commands.builtin import role_policy
from tiny_harness.errors import RegistryError
from tiny_harness.hooks import Executor
from tiny_harness.plugins import Plugin, PluginReport, RemoteDeclaration, Server, load_plugins, resolve
from tiny_harness.plugins.builtin import builtin_plugin
from tiny_harness.plugins.skills import Skill
from tiny_harness.settings import Settings
from tiny_harness_engine.core.prompt import Section
from tiny_harness_engine.sections import prompt_sections

Kind = Literal["hook", "command", "tool", "skill", "prompt", "agent"]
T = TypeVar("T")

CODE_PLUGIN: Final = "code"
"""The name under which commands registered from code stand in reports."""


class Table(Generic[T]):
    """Entries of one kind by name, in the order of their registration."""

    def __init__(self, kind: Kind) -> None:
        self.kind: Final = kind
        self._entries: dict[str, T] = {}
        self._is_frozen = False

    def add(self, name: str, entry: T, *, override: bool = False) -> None:
        """Register an entry.

        Raises:
            RegistryError: The name is taken and the entry does not override, or the table is frozen.
        """
        if self._is_frozen:
            raise RegistryError(self.kind, name, "comes too late: the registry is frozen")
        if name in self._entries and not override:
            raise RegistryError(self.kind, name, "is registered already")
        self._entries[name] = entry

    def freeze(self) -> None:
        """Refuse every further entry."""
        self._is_frozen = True

    def get(self, name: str) -> T | None:
        """Find an entry."""
        return self._entries.get(name)

    def __iter__(self) -> Iterator[T]:
        return iter(self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)


@dataclass(frozen=True, slots=True)
class Registry:
    """What this engine has, whole and frozen."""

    commands: Table[CommandSpec]
    hooks: Table[Executor]
    """Executors in this process. Those elsewhere join when their clients are open."""
    prompts: Table[str]
    skills: Table[Skill]
    servers: tuple[Server, ...]
    """MCP servers, in the order of their plugins."""
    sections: tuple[Section, ...]
    """What plugins add to every prompt."""
    remote: tuple[RemoteDeclaration, ...]
    """Executors elsewhere."""
    reports: tuple[PluginReport, ...]
    """What became of each plugin, in the order of loading."""


def build_registry(
    settings: Settings,
    *,
    commands: CommandRegistry | None = None,
    plugins: Sequence[Plugin] = (),
    builtin_commands: bool = True,
) -> Registry:
    """Load all plugins and fill the tables: built-ins, code, directories.

    Args:
        settings: Names the plugin directories.
        commands: Commands registered from code.
        plugins: Plugins made in code.
        builtin_commands: Whether the built-in commands are there. The role policy always is.

    Raises:
        RegistryError: Two entries from code want one name.
    """
    found, rejected = load_plugins(settings.plugins, deadline_s=settings.hooks.deadline)
    given = [*([builtin_plugin()] if builtin_commands else ()), *_from_code(commands), *plugins, *found]
    loaded, reports = resolve(given)
    registry = Registry(
        commands=Table("command"),
        hooks=Table("hook"),
        prompts=Table("prompt"),
        skills=Table("skill"),
        servers=tuple(server for plugin in loaded for server in plugin.servers),
        sections=prompt_sections(loaded),
        remote=tuple(declaration for plugin in loaded for declaration in plugin.remote),
        reports=(*reports, *rejected),
    )
    for plugin in loaded:
        for spec in plugin.commands:
            registry.commands.add(spec.name, spec)
        for executor in plugin.executors:
            registry.hooks.add(executor.name, executor)
        for skill in plugin.skills:
            registry.skills.add(skill.name, skill)
        for name, prompt in plugin.prompts.items():
            registry.prompts.add(f"{plugin.name}/{name}", prompt)
    policy = role_policy(tuple(registry.commands))
    registry.hooks.add(policy.name, policy)
    for table in (registry.commands, registry.hooks, registry.prompts, registry.skills):
        table.freeze()
    return registry


def _from_code(commands: CommandRegistry | None) -> list[Plugin]:
    if commands is None or not commands.specs:
        return []
    return [Plugin(CODE_PLUGIN, commands=commands.specs, executors=commands.executors)]
