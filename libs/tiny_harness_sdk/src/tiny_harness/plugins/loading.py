"""Reads plugin folders: Agent Plugins 1.0 with our namespace directory. One bad part never takes the rest down."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError

from tiny_harness.commands.registry import command_executor
from tiny_harness.commands.spec import CommandSpec
from tiny_harness.errors import RegistryError
from tiny_harness.ext.names import METADATA_BASE
from tiny_harness.hooks.declaration import RemoteDeclaration
from tiny_harness.hooks.executor import DEFAULT_DEADLINE_S, Executor, call_function
from tiny_harness.hooks.points import parse_point
from tiny_harness.plugins.code import PluginCode
from tiny_harness.plugins.documents import COMMANDS, HOOKS, CommandEntry, ExecutorEntry, entries, why_invalid
from tiny_harness.plugins.files import PluginFolder
from tiny_harness.plugins.manifest import MANIFEST, read_manifest
from tiny_harness.plugins.plugin import Plugin
from tiny_harness.plugins.report import Component, ComponentKind, ComponentState, PluginReport
from tiny_harness.plugins.servers import MCP, Server, read_servers
from tiny_harness.plugins.skills import MAX_SKILLS, SKILLS, Skill, read_skill

NAMESPACE: Final = METADATA_BASE
"""The folder in a plugin that is ours (Agent Plugins 1.0, 8.2)."""
PROMPTS: Final = "prompts"
SYSTEM_PROMPT: Final = "systemprompt.md"
MAX_PROMPTS: Final = 100

E = TypeVar("E", bound=BaseModel)


def load_plugin(path: Path, *, deadline_s: float = DEFAULT_DEADLINE_S) -> tuple[Plugin | None, PluginReport]:
    """Read a plugin's folder and import its functions.

    Args:
        path: The folder.
        deadline_s: Seconds that an executor may take which does not say it itself.

    Returns:
        The plugin, `None` if its manifest rejects it, and what became of each part. Commands are judged by `resolve`,
        when those of all plugins are known.
    """
    try:
        folder = PluginFolder(path)
        document = folder.document(MANIFEST)
        if document is None:
            raise RegistryError("manifest", MANIFEST, "is missing")
        manifest, ignored = read_manifest(document)
        digest = folder.digest()
    except RegistryError as error:
        return None, PluginReport(plugin=path.name, path=str(path), state="rejected", reason=str(error))
    reading = _Reading(manifest.name, folder, deadline_s, [*ignored])
    reading.skills_folder()
    reading.mcp()
    if reading.attempt("file", NAMESPACE, lambda: folder.find(NAMESPACE, kind="folder")):
        reading.namespace()
    plugin = Plugin(
        name=manifest.name,
        version=manifest.version,
        description=manifest.description or "",
        commands=tuple(reading.commands.values()),
        executors=tuple(one for one in reading.executors.values() if isinstance(one, Executor)),
        remote=tuple(one for one in reading.executors.values() if isinstance(one, RemoteDeclaration)),
        servers=reading.servers,
        skills=tuple(reading.skills),
        prompts=reading.prompts,
        system_prompt=reading.system_prompt,
        digest=digest,
        root=folder.root,
        components=tuple(reading.components),
    )
    return plugin, plugin.report


def load_plugins(
    paths: Iterable[Path], *, deadline_s: float = DEFAULT_DEADLINE_S
) -> tuple[tuple[Plugin, ...], tuple[PluginReport, ...]]:
    """Read plugin folders, in this order.

    Returns:
        The plugins that were read, for `resolve`; and the reports of those that were not.
    """
    plugins: list[Plugin] = []
    rejected: list[PluginReport] = []
    for path in paths:
        plugin, report = load_plugin(path, deadline_s=deadline_s)
        if plugin is None:
            rejected.append(report)
        else:
            plugins.append(plugin)
    return tuple(plugins), tuple(rejected)


@dataclass
class _Reading:
    """What has been read of one folder so far."""

    plugin: str
    folder: PluginFolder
    deadline_s: float
    components: list[Component]
    commands: dict[str, CommandSpec] = field(default_factory=dict[str, CommandSpec])
    executors: dict[str, Executor | RemoteDeclaration] = field(default_factory=dict[str, Executor | RemoteDeclaration])
    prompts: dict[str, str] = field(default_factory=dict[str, str])
    system_prompt: str | None = None
    servers: tuple[Server, ...] = ()
    skills: list[Skill] = field(default_factory=list[Skill])

    def note(self, kind: ComponentKind, name: str, state: ComponentState, reason: str) -> None:
        self.components.append(Component(kind=kind, name=name[:200], state=state, reason=reason[:500]))

    def attempt(self, kind: ComponentKind, name: str, read: Callable[[], Any]) -> Any:
        """Read something; what is wrong with it is noted, and `None` is answered."""
        try:
            return read()
        except RegistryError as error:
            self.note(kind, name, "skipped", str(error))
        except ValidationError as error:
            self.note(kind, name, "skipped", why_invalid(error))
        return None

    def skills_folder(self) -> None:
        """Read the skills: each folder below `skills/` is one."""
        names = self.attempt("skills", SKILLS, lambda: self.folder.names(SKILLS)) or []
        for index, name in enumerate(name for name in names if not name.startswith(".")):
            if (self.folder.root / SKILLS / name).is_file():
                self.note("file", f"{SKILLS}/{name}", "unused", "is no folder, and so no skill")
            elif index >= MAX_SKILLS:
                self.note("skill", name, "skipped", f"is beyond the first {MAX_SKILLS}")
            elif (read := self.attempt("skill", name, partial(read_skill, self.folder, name))) is not None:
                skill, strangers = read
                self.skills.append(skill)
                for stranger in strangers:
                    self.note("file", f"{SKILLS}/{name}", "unused", f"`{stranger}` is no field that tiny-harness reads")

    def mcp(self) -> None:
        """Read the servers."""
        document = self.attempt("mcp", MCP, lambda: self.folder.document(MCP))
        if document is None:
            return
        read = self.attempt("mcp", MCP, lambda: read_servers(document, self.plugin, self.folder))
        if read is not None:
            self.servers, left_out = read
            self.components += left_out

    def namespace(self) -> None:
        """Read our folder."""
        for entry in self._entries(COMMANDS, "commands", CommandEntry, "command"):
            self.attempt("command", entry.name, partial(self._command, entry))
        code = PluginCode(self.plugin, self.folder, NAMESPACE)
        for entry in self._entries(HOOKS, "executors", ExecutorEntry, "executor", f"{self.plugin}/"):
            self.attempt("executor", f"{self.plugin}/{entry.name}", partial(self._executor, entry, code))
        self._prompts()
        self.system_prompt = self.attempt("system prompt", SYSTEM_PROMPT, lambda: self._text(SYSTEM_PROMPT))
        self._strangers()

    def _entries(self, name: str, key: str, model: type[E], kind: ComponentKind, prefix: str = "") -> list[E]:
        document = self.attempt("file", name, lambda: self.folder.document(f"{NAMESPACE}/{name}"))
        if document is None:
            return []
        found = self.attempt("file", name, lambda: entries(document, key, name)) or []
        read = (
            self.attempt(kind, _name_of(entry, index, prefix), partial(model.model_validate, entry))
            for index, entry in enumerate(found)
        )
        return [entry for entry in read if entry is not None]

    def _command(self, entry: CommandEntry) -> None:
        if entry.name in self.commands:
            raise RegistryError("command", entry.name, f"is in {COMMANDS} twice")
        self.commands[entry.name] = CommandSpec(**entry.model_dump())

    def _executor(self, entry: ExecutorEntry, code: PluginCode) -> None:
        name = f"{self.plugin}/{entry.name}"
        if name in self.executors:
            raise RegistryError("executor", entry.name, f"is in {HOOKS} twice")
        deadline_s = float(entry.deadline_s or self.deadline_s)
        if entry.url is not None:
            self.executors[name] = RemoteDeclaration(
                name=name,
                point=entry.point,
                url=entry.url,
                key_id=entry.key_id or self.plugin,
                transport=entry.transport or "jsonrpc",
                command=entry.command,
                priority=entry.priority,
                deadline_s=deadline_s,
                on_failure=entry.on_failure,
                plugin=self.plugin,
            )
            return
        try:
            function = code.function(*entry.code)
        except RegistryError as error:
            if entry.is_guard:
                self.executors[name] = _local(name, entry, _refuser(str(error)), self.plugin, deadline_s)
            raise
        self.executors[name] = _local(name, entry, function, self.plugin, deadline_s)

    def _prompts(self) -> None:
        names = self.attempt("file", PROMPTS, lambda: self.folder.names(f"{NAMESPACE}/{PROMPTS}")) or []
        files = [name for name in names if name.endswith(".md") and not name.startswith(".")]
        for index, name in enumerate(files):
            if index >= MAX_PROMPTS:
                self.note("prompt", name, "skipped", f"is beyond the first {MAX_PROMPTS}")
            elif (text := self.attempt("prompt", name, partial(self._text, f"{PROMPTS}/{name}"))) is not None:
                self.prompts[name.removesuffix(".md")] = text

    def _text(self, name: str) -> str | None:
        return self.folder.text(f"{NAMESPACE}/{name}")

    def _strangers(self) -> None:
        """Name the files that nobody reads: a misspelt name would otherwise do nothing, silently."""
        for name in self.folder.names(NAMESPACE):
            known = name in (COMMANDS, HOOKS, SYSTEM_PROMPT, PROMPTS) or name.endswith(".py") or name.startswith(".")
            if not known and (self.folder.root / NAMESPACE / name).is_file():
                self.note("file", name, "unused", "is no file that tiny-harness reads")


def _local(name: str, entry: ExecutorEntry, function: Callable[..., Any], plugin: str, deadline_s: float) -> Executor:
    operation, phase = parse_point(entry.point)
    if phase == "in" and entry.command is not None:  # a body answers what a body registered in code answers (R6a.7)
        body = command_executor(entry.command, function, executor=name, priority=entry.priority, deadline_s=deadline_s)
        return replace(body, plugin=plugin, on_failure=entry.on_failure)
    return Executor(
        name=name,
        operation=operation,
        phase=phase,
        call=call_function(function),
        priority=entry.priority,
        deadline_s=deadline_s,
        on_failure=entry.on_failure,
        command=entry.command,
        plugin=plugin,
    )


def _refuser(reason: str) -> Callable[[Any], Any]:
    """Stand in for a guard that could not be loaded: what it guards is not let through, as if the guard were down."""

    async def refuse(_context: Any) -> None:
        raise RuntimeError(f"could not be loaded: {reason}")

    return refuse


def _name_of(entry: Any, index: int, prefix: str) -> str:
    """Name an entry that may be malformed."""
    name = entry.get("name") if isinstance(entry, dict) else None
    return f"{prefix}{name}" if isinstance(name, str) and name else f"entry {index + 1}"
