"""Decides which commands there are and which executors go with them, once all plugins are known (R6.5, R6a.8). Pure."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace

from tiny_harness.commands.spec import CommandSpec, check_name
from tiny_harness.errors import RegistryError
from tiny_harness.hooks.declaration import RemoteDeclaration
from tiny_harness.hooks.executor import DEFAULT_PRIORITY, Executor
from tiny_harness.hooks.points import BODY
from tiny_harness.plugins.plugin import Plugin
from tiny_harness.plugins.report import Component, ComponentState, PluginReport
from tiny_harness.plugins.skills import Skill

Judge = Callable[[Executor | RemoteDeclaration], tuple[ComponentState, str]]
"""Says what is wrong with an executor; no reason: nothing."""


def resolve(
    plugins: Iterable[Plugin], taken: Collection[str] = ()
) -> tuple[tuple[Plugin, ...], tuple[PluginReport, ...]]:
    """Keep of each plugin what may stand.

    A command falls if its name is invalid or declared by somebody before, or if its own plugin has no body for it. An
    executor falls if its name is taken, and so does a body that nobody declares a command for, or that stands behind
    the command's own; one with a lower priority replaces that (R6a.3). Of two plugins or two skills of one
    name the first counts.

    Args:
        plugins: In the order in which they were loaded, the built-in one first.
        taken: Names of commands that are declared elsewhere, such as in a `CommandRegistry`.

    Returns:
        The plugins that stand, with what is left of them; and a report of each that was given, in the same order.

    Raises:
        RegistryError: Something of a plugin that was made in code would fall: its author is there to mend it (R6.5).
    """
    given = list(plugins)
    board = _Board(dict.fromkeys(taken, _Command("the program", DEFAULT_PRIORITY)))
    accepted = [board.accept(plugin) for plugin in given]  # all commands first: an executor may be for a later one
    done = [plugin and board.finish(plugin) for plugin in accepted]
    reports = [plugin.report if plugin else _rejected(twin) for plugin, twin in zip(done, given, strict=True)]
    for plugin, report in zip(given, reports, strict=True):
        if plugin.root is None:
            _demand_whole(report)
    return tuple(plugin for plugin in done if plugin), tuple(reports)


@dataclass(frozen=True, slots=True)
class _Command:
    """A command that is declared."""

    owner: str
    priority: int
    """Of its own body."""


@dataclass
class _Board:
    """What is known so far."""

    commands: dict[str, _Command]
    plugins: set[str] = field(default_factory=set[str])
    executors: set[str] = field(default_factory=set[str])
    skills: dict[str, str] = field(default_factory=dict[str, str])
    """The plugin of each."""

    def accept(self, plugin: Plugin) -> Plugin | None:
        """Take a plugin's commands and skills; `None` if the plugin's own name is taken."""
        if plugin.name in self.plugins:
            return None
        self.plugins.add(plugin.name)
        plugin = self._skills(self._executors(plugin, self._twin))
        kept: list[CommandSpec] = []
        fallen: list[Component] = []
        for spec in plugin.commands:
            bodies = [one.priority for one in (*plugin.executors, *plugin.remote) if _is_body(one, spec.name)]
            if reason := self._against(spec, bodies):
                fallen.append(Component(kind="command", name=spec.name[:200], state="skipped", reason=reason))
            else:
                kept.append(spec)
                self.commands[spec.name] = _Command(plugin.name, min(bodies))
        return replace(plugin, commands=tuple(kept), components=(*plugin.components, *fallen))

    def finish(self, plugin: Plugin) -> Plugin:
        """Keep the executors that go with the commands that there are."""
        lost = {part.name for part in plugin.components if part.kind == "command" and part.state == "skipped"}
        return self._executors(plugin, lambda one: self._misplaced(plugin, one, lost))

    def _skills(self, plugin: Plugin) -> Plugin:
        """Keep the skills whose names are free: a model knows them by these alone."""
        kept: list[Skill] = []
        fallen: list[Component] = []
        for one in plugin.skills:
            if owner := self.skills.get(one.name):
                reason = f"{owner} has one of this name"
                fallen.append(Component(kind="skill", name=one.name, state="skipped", reason=reason))
            else:
                kept.append(one)
                self.skills[one.name] = plugin.name
        return replace(plugin, skills=tuple(kept), components=(*plugin.components, *fallen))

    def _executors(self, plugin: Plugin, judge: Judge) -> Plugin:
        """Keep the executors that nothing is said against."""
        fallen: list[Component] = []

        def stands(one: Executor | RemoteDeclaration) -> bool:
            state, reason = judge(one)
            if reason:
                fallen.append(Component(kind="executor", name=one.name, state=state, reason=reason))
            return not reason

        executors = tuple(one for one in plugin.executors if stands(one))
        remote = tuple(one for one in plugin.remote if stands(one))
        return replace(plugin, executors=executors, remote=remote, components=(*plugin.components, *fallen))

    def _against(self, spec: CommandSpec, bodies: list[int]) -> str:
        try:
            check_name(spec.name)
        except RegistryError as error:
            return error.reason
        if spec.name in self.commands:
            return f"is declared already, by {self.commands[spec.name].owner}"
        return "" if bodies else f"has no body: no executor at {BODY} for it"

    def _twin(self, one: Executor | RemoteDeclaration) -> tuple[ComponentState, str]:
        if one.name in self.executors:
            return "skipped", "another executor has this name"
        self.executors.add(one.name)
        return "loaded", ""

    def _misplaced(
        self, plugin: Plugin, one: Executor | RemoteDeclaration, lost: set[str]
    ) -> tuple[ComponentState, str]:
        if one.command is None:
            return "loaded", ""
        if one.point == BODY and one.command in lost:
            return "skipped", f"the plugin's command {one.command!r} was skipped"
        command = self.commands.get(one.command)
        if command is None:
            return "skipped" if one.point == BODY else "unused", f"nobody declares the command {one.command!r}"
        if one.point == BODY and command.owner != plugin.name and one.priority >= command.priority:
            below = f"give it a priority below {command.priority} to replace that"
            return "skipped", f"stands behind the body of {command.owner}'s command {one.command!r}; {below}"
        return "loaded", ""


def _is_body(one: Executor | RemoteDeclaration, command: str) -> bool:
    return one.point == BODY and one.command == command


def _rejected(plugin: Plugin) -> PluginReport:
    return PluginReport(
        plugin=plugin.name,
        path=str(plugin.root) if plugin.root else None,
        version=plugin.version,
        digest=plugin.digest,
        state="rejected",
        reason="is loaded already: two plugins may not have one name",
    )


def _demand_whole(report: PluginReport) -> None:
    if report.state == "rejected":
        raise RegistryError("plugin", report.plugin, report.reason)
    for part in report.components:
        if part.state == "skipped":
            raise RegistryError(part.kind, part.name, part.reason)
