"""What `tiny-harness doctor` says of plugins."""

import json
from pathlib import Path
from typing import Any

import pytest

from tiny_harness.cli.main import main
from tiny_harness.plugins.loading import NAMESPACE

BODY = {"name": "body", "point": "command.invoked.in", "command": "deploy", "url": "https://example.com/rpc"}


def plugin(folder: Path, *, commands: list[dict[str, Any]], executors: list[dict[str, Any]]) -> str:
    """Make a plugin's folder."""
    ours = folder / NAMESPACE
    ours.mkdir(parents=True)
    schema = "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json"
    (folder / "plugin.json").write_text(json.dumps({"$schema": schema, "name": folder.name}))
    (ours / "commands.json").write_text(json.dumps({"commands": commands}))
    (ours / "hooks.json").write_text(json.dumps({"executors": executors}))
    return str(folder)


def examine(tmp_path: Path, capsys: pytest.CaptureFixture[str], *plugins: str) -> dict[str, dict[str, Any]]:
    """Run the command on a configuration with plugins; what it says by check."""
    config = tmp_path / "c.toml"
    store = json.dumps(str(tmp_path / "store.db"))
    config.write_text(
        f"plugins = {json.dumps(plugins)}\n[model]\nprovider = 'scripted'\n[store]\nsqlite_path = {store}"
    )
    main(["--config", str(config), "doctor", "--json"])
    return {check["check"]: check for check in json.loads(capsys.readouterr().out)}


def test_each_plugin_is_told_with_what_it_brings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = plugin(tmp_path / "good", commands=[{"name": "deploy"}], executors=[BODY])
    told = examine(tmp_path, capsys, good)
    assert told["plugin good"]["ok"]
    assert told["plugin good"]["detail"] == f"{good}: command deploy, executor good/body"
    assert list(told)[-1] == "harness"


def test_what_is_wrong_with_a_plugin_is_told_and_the_others_are_looked_at(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    taken = plugin(tmp_path / "taken", commands=[{"name": "status"}], executors=[{**BODY, "command": "status"}])
    (tmp_path / "empty").mkdir()
    good = plugin(tmp_path / "good", commands=[{"name": "deploy"}], executors=[BODY])
    told = examine(tmp_path, capsys, taken, str(tmp_path / "empty"), good, str(tmp_path / "absent"))
    assert [told[f"plugin {name}"]["ok"] for name in ("taken", "empty", "good", "absent")] == [
        False,
        False,
        True,
        False,
    ]
    assert "status" in told["plugin taken"]["detail"]
    assert "rejected" in told["plugin empty"]["detail"]


def test_without_plugins_none_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert not any(check.startswith("plugin") for check in examine(tmp_path, capsys))
