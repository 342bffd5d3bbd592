"""The registry: one table per kind, each name once, frozen before work."""

import json
from pathlib import Path

import pytest

from tiny_harness.commands import CommandRegistry, CommandSpec
from tiny_harness.errors import RegistryError
from tiny_harness.hooks import Executor, call_function
from tiny_harness.plugins import Plugin
from tiny_harness.settings import Settings
from tiny_harness_engine.registry import CODE_PLUGIN, Table, build_registry

BUILT_INS = ["model", "effort", "sub-task", "status", "invite", "help"]


def say(_context: object) -> str:
    return "said"


def registry_of(*names: str) -> CommandRegistry:
    found = CommandRegistry()
    for name in names:
        found.register(name, "", "", say)
    return found


def names_of(table: Table[CommandSpec]) -> list[str]:
    return [spec.name for spec in table]


def test_a_table_keeps_the_order_and_finds_by_name() -> None:
    table: Table[int] = Table("prompt")
    for number, name in enumerate(("b", "a", "c")):
        table.add(name, number)
    assert (list(table), len(table), table.get("a"), table.get("x")) == ([0, 1, 2], 3, 1, None)


def test_a_second_entry_is_refused_unless_it_says_that_it_overrides() -> None:
    table: Table[int] = Table("command")
    table.add("a", 1)
    with pytest.raises(RegistryError) as caught:
        table.add("a", 2)
    assert (caught.value.kind, caught.value.name, table.get("a")) == ("command", "a", 1)
    table.add("a", 3, override=True)
    assert list(table) == [3]


@pytest.mark.parametrize("override", [False, True])
def test_a_frozen_table_takes_nothing_more(override: bool) -> None:
    table: Table[int] = Table("hook")
    table.add("a", 1)
    table.freeze()
    for name in ("a", "b"):
        with pytest.raises(RegistryError):
            table.add(name, 2, override=override)
    assert list(table) == [1]


def test_a_built_registry_is_frozen_and_has_the_built_ins_first() -> None:
    registry = build_registry(Settings(), commands=registry_of("deploy"))
    assert names_of(registry.commands) == [*BUILT_INS, "deploy"]
    assert [report.plugin for report in registry.reports][-1] == CODE_PLUGIN
    with pytest.raises(RegistryError):
        registry.commands.add("late", CommandSpec(name="late"))
    with pytest.raises(RegistryError):
        registry.hooks.add("late", Executor("late", "command.invoked", "pre", call_function(say)))
    with pytest.raises(RegistryError):
        registry.prompts.add("late", "words")


def test_without_the_built_ins_their_names_are_free_and_the_role_policy_stays() -> None:
    registry = build_registry(Settings(), commands=registry_of("status"), builtin_commands=False)
    assert names_of(registry.commands) == ["status"]
    assert registry.hooks.get("builtin/role-policy") is not None
    assert build_registry(Settings(), builtin_commands=False).hooks.get("builtin/role-policy") is not None


def test_code_that_takes_a_built_ins_name_is_told_when_the_registry_is_built() -> None:
    with pytest.raises(RegistryError) as caught:
        build_registry(Settings(), commands=registry_of("status"))
    assert "status" in str(caught.value)


def test_two_plugins_from_code_may_not_share_a_command() -> None:
    def plugin(name: str) -> Plugin:
        found = registry_of("deploy")
        return Plugin(name, commands=found.specs, executors=found.executors)

    with pytest.raises(RegistryError):
        build_registry(Settings(), plugins=[plugin("one"), plugin("two")])


def test_a_folder_that_takes_a_name_of_codes_loses_it_and_nothing_else_falls(tmp_path: Path) -> None:
    ours = tmp_path / "late" / "io.github.madarauchiha-314.tiny-harness"
    ours.mkdir(parents=True)
    schema = "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json"
    (tmp_path / "late" / "plugin.json").write_text(json.dumps({"$schema": schema, "name": "late"}))
    names = ("deploy", "undeploy")
    (ours / "commands.json").write_text(json.dumps({"commands": [{"name": name} for name in names]}))
    bodies = [
        {"name": name, "point": "command.invoked.in", "command": name, "python": "hooks.py:say"} for name in names
    ]
    (ours / "hooks.json").write_text(json.dumps({"executors": bodies}))
    (ours / "hooks.py").write_text("def say(context):\n    return 'late'\n")
    registry = build_registry(Settings(plugins=(tmp_path / "late",)), commands=registry_of("deploy"))
    assert names_of(registry.commands) == [*BUILT_INS, "deploy", "undeploy"]
    late = registry.reports[-1]
    assert late.plugin == "late"
    assert {part.name: part.state for part in late.components if part.kind == "command"}["undeploy"] == "loaded"
    assert any("deploy" in problem for problem in late.problems)
