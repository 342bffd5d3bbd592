"""Which commands and executors stand, once all plugins are known (R6a.3, R6a.8)."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tiny_harness.commands.registry import command_executor
from tiny_harness.commands.spec import CommandSpec
from tiny_harness.errors import RegistryError
from tiny_harness.hooks import Executor
from tiny_harness.hooks.executor import DEFAULT_PRIORITY
from tiny_harness.plugins import Plugin, PluginReport, RemoteDeclaration, builtin_plugin, resolve


def body(command: str, name: str = "", priority: int = DEFAULT_PRIORITY) -> Executor:
    return command_executor(command, lambda _context: "ok", executor=name or f"body/{command}", priority=priority)


async def nothing(_context: Any) -> None:
    return None


def policy(command: str | None, name: str = "policy") -> Executor:
    return Executor(name, "command.invoked", "pre", nothing, command=command)


def remote(command: str | None, point: str = "command.invoked.in", priority: int = 1000) -> RemoteDeclaration:
    url = "https://example.org/"
    return RemoteDeclaration(name="far", point=point, url=url, key_id="k", command=command, priority=priority)


def plugin(
    name: str, *commands: str, executors: tuple[Executor, ...] = (), far: tuple[RemoteDeclaration, ...] = ()
) -> Plugin:
    """Make one that was read from a folder."""
    specs = tuple(CommandSpec(name=one) for one in commands)
    return Plugin(name, commands=specs, executors=executors, remote=far, root=Path("/plugins", name))


def names(plugins: tuple[Plugin, ...]) -> dict[str, tuple[list[str], list[str]]]:
    """By plugin: its commands and its executors."""
    return {
        one.name: ([spec.name for spec in one.commands], [each.name for each in (*one.executors, *one.remote)])
        for one in plugins
    }


def fallen(report: PluginReport) -> list[tuple[str, str, str]]:
    parts = [(part.kind, part.name, part.state) for part in report.components if part.state != "loaded"]
    assert all(part.reason for part in report.components if part.state != "loaded")
    return parts


def test_a_command_with_its_body_stands() -> None:
    plugins, [report] = resolve([plugin("a", "deploy", executors=(body("deploy"),))])
    assert names(plugins) == {"a": (["deploy"], ["body/deploy"])}
    assert {part.state for part in report.components} == {"loaded"}


def test_a_remote_executor_is_a_body_too() -> None:
    plugins, [report] = resolve([plugin("a", "deploy", far=(remote("deploy"),))])
    assert names(plugins) == {"a": (["deploy"], ["far"])}
    assert fallen(report) == []


@pytest.mark.parametrize("name", ["Deploy", "a_b", "", "x" * 65, "a/b", "a\n"])
def test_a_command_with_an_invalid_name_falls_with_its_body(name: str) -> None:
    plugins, [report] = resolve([plugin("a", name, "ok", executors=(body(name, "bad"), body("ok")))])
    assert names(plugins) == {"a": (["ok"], ["body/ok"])}
    assert fallen(report) == [("command", name, "skipped"), ("executor", "bad", "skipped")]


@pytest.mark.parametrize("others", [(), (policy("deploy"),), (body("other"),)])
def test_a_command_without_a_body_falls(others: tuple[Executor, ...]) -> None:
    _, [report] = resolve([plugin("a", "deploy", executors=others)])
    assert ("command", "deploy", "skipped") in fallen(report)


def test_an_executor_for_every_command_is_no_commands_body() -> None:
    general = Executor("general", "command.invoked", "in", nothing)
    plugins, _ = resolve([plugin("a", "deploy", executors=(general,))])
    assert names(plugins) == {"a": ([], ["general"])}


def test_a_body_in_another_plugin_is_not_the_commands_own() -> None:
    plugins, _ = resolve([plugin("a", "deploy"), plugin("b", executors=(body("deploy"),))])
    assert names(plugins) == {"a": ([], []), "b": ([], [])}


def test_the_second_plugin_with_a_command_of_one_name_loses_it_and_its_body() -> None:
    first = plugin("a", "deploy", executors=(body("deploy", "a/deploy"),))
    second = plugin("b", "deploy", "other", executors=(body("deploy", "b/deploy", 1), body("other")))
    plugins, [_, report] = resolve([first, second])
    assert names(plugins) == {"a": (["deploy"], ["a/deploy"]), "b": (["other"], ["body/other"])}
    assert fallen(report) == [("command", "deploy", "skipped"), ("executor", "b/deploy", "skipped")]


def test_nobody_takes_the_name_of_a_built_in() -> None:
    newcomer = plugin("a", "status", executors=(body("status", "a/status", 1),))
    plugins, [_, report] = resolve([builtin_plugin(), newcomer])
    assert names(plugins)["a"] == ([], [])
    assert "builtin" in report.problems[0]


def test_a_name_that_the_program_took_is_taken() -> None:
    plugins, _ = resolve([plugin("a", "deploy", executors=(body("deploy"),))], taken={"deploy"})
    assert names(plugins) == {"a": ([], [])}


def test_a_body_with_a_lower_priority_replaces_somebody_elses() -> None:
    replaces = plugin("a", executors=(body("status", "a/status", 500),), far=(remote("help", priority=999),))
    plugins, [_, report] = resolve([builtin_plugin(), replaces])
    assert names(plugins)["a"] == ([], ["a/status", "far"])
    assert fallen(report) == []
    plugins, _ = resolve([plugin("a", executors=(body("deploy", "x", 500),))], taken={"deploy"})
    assert names(plugins) == {"a": ([], ["x"])}


def test_a_replacement_may_be_loaded_before_what_it_replaces() -> None:
    replaces = plugin("a", executors=(body("deploy", "a/deploy", 500),))
    owner = plugin("b", "deploy", executors=(body("deploy", "b/deploy"),))
    plugins, _ = resolve([replaces, owner])
    assert names(plugins) == {"a": ([], ["a/deploy"]), "b": (["deploy"], ["b/deploy"])}


@pytest.mark.parametrize("priority", [1000, 2000])
def test_a_body_that_stands_behind_somebody_elses_would_never_run_and_falls(priority: int) -> None:
    late = plugin("a", executors=(body("status", "a/status", priority),))
    _, [_, report] = resolve([builtin_plugin(), late])
    assert fallen(report) == [("executor", "a/status", "skipped")]
    assert "below 1000" in report.problems[0]


def test_a_body_for_a_command_that_nobody_declares_falls() -> None:
    plugins, [report] = resolve([plugin("a", executors=(body("ghost", priority=1),), far=(remote("phantom"),))])
    assert names(plugins) == {"a": ([], [])}
    assert fallen(report) == [("executor", "body/ghost", "skipped"), ("executor", "far", "skipped")]


def test_a_policy_for_a_command_that_nobody_declares_is_unused() -> None:
    plugins, [report] = resolve([plugin("a", executors=(policy("ghost"), policy(None, "all")))])
    assert names(plugins) == {"a": ([], ["all"])}
    assert fallen(report) == [("executor", "policy", "unused")]
    assert report.problems == ()


def test_the_second_plugin_of_a_name_is_rejected_whole() -> None:
    second = plugin("a", "other", executors=(body("other"),))
    plugins, reports = resolve([plugin("a", "deploy", executors=(body("deploy"),)), second])
    assert names(plugins) == {"a": (["deploy"], ["body/deploy"])}
    assert [report.state for report in reports] == ["loaded", "rejected"]
    assert reports[1].components == ()


def test_a_rejected_plugin_takes_no_names() -> None:
    plugins, _ = resolve(
        [
            plugin("a"),
            plugin("a", "deploy", executors=(body("deploy", "lost"),)),
            plugin("b", "deploy", executors=(body("deploy", "kept"),)),
        ]
    )
    assert names(plugins)["b"] == (["deploy"], ["kept"])


def test_the_second_executor_of_a_name_falls_and_a_command_that_needs_it_too() -> None:
    first = plugin("a", executors=(policy(None, "same"),))
    second = plugin("b", "deploy", executors=(body("deploy", "same"),))
    plugins, [_, report] = resolve([first, second])
    assert names(plugins) == {"a": ([], ["same"]), "b": ([], [])}
    assert fallen(report) == [("executor", "same", "skipped"), ("command", "deploy", "skipped")]


def test_resolving_again_changes_nothing() -> None:
    given = [builtin_plugin(), plugin("a", "deploy", "Bad", executors=(body("deploy"), body("status", "s", 1)))]
    once, _ = resolve(given)
    twice, _ = resolve(once)
    assert names(once) == names(twice)
    assert [one.digest for one in once] == [one.digest for one in given]


def test_the_built_in_plugin_stands_whole() -> None:
    builtin = builtin_plugin()
    plugins, [report] = resolve([builtin])
    assert plugins == (builtin,)
    assert fallen(report) == []
    assert all(one.is_builtin and one.plugin == "" for one in builtin.executors)


@pytest.mark.parametrize(
    "faulty",
    [
        plugin("a", "Bad", executors=(body("Bad"),)),
        plugin("a", "deploy"),
        plugin("a", "status", executors=(body("status", "a/status", 1),)),
        plugin("a", executors=(body("ghost"),)),
        plugin("a", executors=(body("status", "a/status"),)),
        plugin("a", executors=(policy(None, "builtin/status"),)),
        plugin("builtin"),
    ],
)
def test_what_falls_of_a_plugin_made_in_code_is_an_error(faulty: Plugin) -> None:
    resolve([builtin_plugin(), faulty])  # of one from a folder it is a line of its report
    with pytest.raises(RegistryError):
        resolve([builtin_plugin(), replace(faulty, root=None)])


def test_a_policy_made_in_code_may_be_for_a_command_that_is_not_there() -> None:
    _, [report] = resolve([replace(plugin("a", executors=(policy("ghost"),)), root=None)])
    assert fallen(report) == [("executor", "policy", "unused")]
