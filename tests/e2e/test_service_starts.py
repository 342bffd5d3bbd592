"""A service that cannot start says why in one line of JSON, and its exit status whether trying again can help."""

import asyncio
import json
import os
import socket
import sys
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from tests.e2e.plugin_folder import body, write_plugin
from tests.ports import free_port
from tests.served import ROOT

IS_SOAK: Final = bool(os.environ.get("TINY_HARNESS_SOAK"))
PATIENCE_S: Final = 60
FAILED: Final = 1
USAGE: Final = 2

NOTE: Final = {"name": "note", "description": "Note something"}
CODE: Final = "def note(context):\n    return 'noted'\n"

Sections = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Refusal:
    """How a start ended."""

    status: int
    line: Mapping[str, Any]

    @property
    def place(self) -> tuple[int, str, str | None]:
        """What operators and their tools act on: exit status, code, key."""
        return self.status, self.line["code"], self.line.get("key")


async def start(service: str, *words: str | Path) -> Refusal:
    """Start a service that cannot start; what it says is one line."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", f"tiny_harness_{service}", *map(str, words)),
        cwd=ROOT,
        env={**os.environ, "TINY_HARNESS_STORE_URL": "", "TINY_HARNESS_REDIS_URL": ""},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(PATIENCE_S):
            out, err = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
    assert out == b""
    said = [json.loads(line) for line in err.decode().splitlines()]
    [line] = [each for each in said if each["level"] == "error"]
    assert line["logger"] == f"tiny_harness_{service}"
    assert {"at", "message", "code"} <= set(line)
    assert process.returncode is not None
    return Refusal(process.returncode, line)


def config(folder: Path, name: str, changes: Mapping[str, Mapping[str, Any]]) -> Path:
    """Write the configuration of a service that could start but for the changes."""
    sections: Sections = {
        "temporal": {"mode": "remote", "address": f"127.0.0.1:{free_port()}"},
        "store": {"sqlite_path": str(folder / "store.db")},
        "model": {"provider": "scripted"},
        "auth": {"mode": "tokens"},
        "server": {"bind": f"127.0.0.1:{free_port()}"},
    }
    for section, keys in changes.items():
        sections[section] = {**sections.get(section, {}), **keys}
    lines: list[str] = []
    for section, keys in sections.items():
        lines += [f"[{section}]", *(f"{key} = {json.dumps(value)}" for key, value in keys.items())]
    path = folder / f"{name}.toml"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def taken() -> Generator[str]:
    """An address that somebody else listens on."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


async def refusals(service: str, *starts: Sequence[str | Path]) -> list[Refusal]:
    return await asyncio.gather(*(start(service, *words) for words in starts))


async def test_what_is_wrong_with_a_gateways_configuration_is_one_line_and_status_2(tmp_path: Path, taken: str) -> None:
    changes: dict[str, Sections] = {
        "local": {"auth": {"mode": "local"}},
        "open": {"auth": {"mode": "none"}, "server": {"bind": "0.0.0.0:0"}},
        "taken": {"server": {"bind": taken}},
        "unknown": {"server": {"bimd": "x"}},
        "embedded": {"temporal": {"mode": "embedded"}},
    }
    files = [config(tmp_path, name, change) for name, change in changes.items()]
    told = await refusals("gateway", *(("--config", file) for file in files), ("--config", tmp_path / "none.toml"))
    keys = [refusal.line.get("key") for refusal in told]
    assert keys[:5] == ["auth.mode", "server.bind", "server.bind", "server.bimd", "temporal.mode"]
    assert {refusal.status for refusal in told} == {USAGE}
    assert {refusal.line["code"] for refusal in told} == {"config"}
    assert told[3].line["file"] == str(files[3])
    assert "none.toml" in told[5].line["file"]


async def test_what_is_wrong_with_an_engines_configuration_is_one_line_and_status_2(tmp_path: Path, taken: str) -> None:
    changes: dict[str, Sections] = {
        "taken": {"o11y": {"admin_bind": taken}},
        "embedded": {"temporal": {"mode": "embedded"}},
    }
    files = [config(tmp_path, name, change) for name, change in changes.items()]
    told = await refusals("engine", *(("--config", file) for file in files))
    assert [refusal.place for refusal in told] == [
        (USAGE, "config", "o11y.admin_bind"),
        (USAGE, "config", "temporal.mode"),
    ]


async def test_what_is_wrong_with_a_hook_hosts_command_line_is_one_line_and_status_2(
    tmp_path: Path, taken: str
) -> None:
    plugin = write_plugin(tmp_path / "p", commands=[NOTE], executors=[body("note", "hooks.py:note")], code=CODE)
    told = await refusals(
        "hooks",
        ("--plugin", plugin, "--unsigned", "--bind", taken),
        ("--plugin", plugin, "--unsigned", "--bind", "0.0.0.0:0"),
        ("--plugin", tmp_path / "none", "--unsigned", "--bind", "127.0.0.1:0"),
    )
    assert {refusal.status for refusal in told} == {USAGE}
    assert {refusal.line["code"] for refusal in told} == {"config"}
    assert told[0].line["key"] == "--bind"
    assert "--unsigned" in told[1].line["message"]
    assert "none" in told[2].line["message"]


@pytest.mark.skipif(not IS_SOAK, reason="waits 15 s for who is not there; make soak runs it")
async def test_a_neighbour_that_is_not_there_is_one_line_and_status_1(tmp_path: Path) -> None:
    store = {"store": {"url": f"postgresql://harness@127.0.0.1:{free_port()}/harness"}}
    files = [config(tmp_path, "temporal", {}), config(tmp_path, "store", store)]
    told = [await refusals(service, *(("--config", file) for file in files)) for service in ("gateway", "engine")]
    for refusal in (refusal for each in told for refusal in each):
        assert refusal.place == (FAILED, "unavailable", None)
