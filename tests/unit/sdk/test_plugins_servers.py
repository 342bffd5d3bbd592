"""`mcp.json` of Agent Plugins 1.0: what is taken, what is left out, and what is expanded."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tiny_harness.errors import RegistryError
from tiny_harness.plugins import HttpServer, Plugin, PluginReport, StdioServer, load_plugin, resolve
from tiny_harness.plugins.manifest import SCHEMA as MANIFEST_SCHEMA
from tiny_harness.plugins.servers import SCHEMA

Load = Callable[..., tuple[Plugin, PluginReport]]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "plugin"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "server").write_text("#!/bin/sh\n")
    (folder / "plugin.json").write_text(json.dumps({"$schema": MANIFEST_SCHEMA, "name": "shop"}))
    return folder


@pytest.fixture
def load(root: Path) -> Load:
    """Load the plugin with these servers, or with this document."""

    def load_one(document: Any = None, **servers: Any) -> tuple[Plugin, PluginReport]:
        document = {"$schema": SCHEMA, "mcpServers": servers} if document is None else document
        (root / "mcp.json").write_text(document if isinstance(document, str) else json.dumps(document))
        plugin, report = load_plugin(root)
        assert plugin is not None
        return plugin, report

    return load_one


def states(report: PluginReport) -> dict[str, str]:
    return {part.name: part.state for part in report.components if part.kind == "mcp"}


def test_both_kinds_of_servers_are_read(load: Load, root: Path) -> None:
    plugin, report = load(
        local={"type": "stdio", "command": "./bin/server", "args": ["-v"], "env": {"A": "b"}, "cwd": "./bin"},
        far={"type": "streamable-http", "url": "https://example.com/mcp", "headers": {"X-Tenant": "north"}},
        near={"type": "http", "url": "http://127.0.0.1:9/mcp"},
    )
    assert plugin.servers == (
        StdioServer("local", "./bin/server", ("-v",), {"A": "b"}, "./bin", "shop", root),
        HttpServer("far", "https://example.com/mcp", {"X-Tenant": "north"}, "shop"),
        HttpServer("near", "http://127.0.0.1:9/mcp", {}, "shop"),
    )
    assert states(report) == {"local": "loaded", "far": "loaded", "near": "loaded"}
    assert [server.full_name for server in plugin.servers] == ["shop/local", "shop/far", "shop/near"]
    assert resolve([plugin])[0][0].servers == plugin.servers


def test_a_plugin_without_the_file_has_no_servers(root: Path) -> None:
    plugin, report = load_plugin(root)
    assert plugin is not None
    assert plugin.servers == ()
    assert states(report) == {}


BAD: dict[str, Any] = {
    "no object": [],
    "no type": {"command": "x"},
    "an unknown type": {"type": "websocket", "url": "https://example.com"},
    "no command": {"type": "stdio"},
    "a null": {"type": "stdio", "command": "x", "cwd": None},
    "an empty command": {"type": "stdio", "command": ""},
    "a shell's line": {"type": "stdio", "command": "node --eval x"},
    "an absolute command": {"type": "stdio", "command": "/bin/sh"},
    "a command elsewhere": {"type": "stdio", "command": "./../other"},
    "a command by a link": {"type": "stdio", "command": "./link"},
    "a path without ./": {"type": "stdio", "command": "bin/server"},
    "a placeholder for a command": {"type": "stdio", "command": "${PLUGIN_ROOT}/bin/server"},
    "a number for an argument": {"type": "stdio", "command": "x", "args": [1]},
    "another's field": {"type": "stdio", "command": "x", "url": "https://example.com"},
    "an unknown field": {"type": "stdio", "command": "x", "shell": True},
    "a reserved variable": {"type": "stdio", "command": "x", "env": {"PLUGIN_DATA": "/tmp"}},
    "no variable": {"type": "stdio", "command": "x", "env": {"A=B": "c"}},
    "a cwd elsewhere": {"type": "stdio", "command": "x", "cwd": "./../.."},
    "a cwd beside the data": {"type": "stdio", "command": "x", "cwd": "${PLUGIN_DATA}/../other"},
    "a cwd from a variable": {"type": "stdio", "command": "x", "cwd": "${HOME}"},
    "an absolute cwd": {"type": "stdio", "command": "x", "cwd": "/tmp"},
    "a bare cwd": {"type": "stdio", "command": "x", "cwd": "bin"},
    "plain http": {"type": "streamable-http", "url": "http://example.com/mcp"},
    "credentials in the url": {"type": "streamable-http", "url": "https://me:secret@example.com/mcp"},
    "a fragment": {"type": "streamable-http", "url": "https://example.com/mcp#x"},
    "no header": {"type": "streamable-http", "url": "https://example.com/mcp", "headers": {"a b": "c"}},
    "two lines": {"type": "streamable-http", "url": "https://example.com/mcp", "headers": {"a": "b\r\nc: d"}},
    "a header twice": {"type": "streamable-http", "url": "https://example.com", "headers": {"a": "b", "A": "b"}},
}


@pytest.mark.parametrize("name", BAD)
def test_one_bad_server_does_not_take_the_others_down(load: Load, root: Path, name: str) -> None:
    (root / "link").symlink_to("/bin/sh")
    plugin, report = load(**{name: BAD[name], "good": {"type": "stdio", "command": "x"}})
    assert [server.name for server in plugin.servers] == ["good"]
    assert states(report) == {name: "skipped", "good": "loaded"}
    assert report.problems


def test_an_old_transport_is_named_and_no_fault(load: Load) -> None:
    plugin, report = load(old={"type": "sse", "url": "https://example.com/sse"})
    assert plugin.servers == ()
    assert states(report) == {"old": "unused"}
    assert report.problems == ()


@pytest.mark.parametrize("name", ["", " ", "a\nb", "x" * 65, "\u202e"])
def test_a_server_needs_a_name_that_can_be_read(load: Load, name: str) -> None:
    plugin, report = load(**{name: {"type": "stdio", "command": "x"}})
    assert plugin.servers == ()
    assert report.problems


@pytest.mark.parametrize(
    "document",
    [
        "{",
        "[]",
        {},
        {"mcpServers": {}},
        {"$schema": SCHEMA},
        {"$schema": SCHEMA, "mcpServers": []},
        {"$schema": SCHEMA, "mcpServers": {}, "more": 1},
        {"$schema": SCHEMA.replace("1.0.0", "9.0.0"), "mcpServers": {}},
        f'{{"$schema": "{SCHEMA}", "mcpServers": {{"a": {{}}, "a": {{}}}}}}',
    ],
)
def test_a_document_that_is_none_leaves_the_plugin(load: Load, document: Any) -> None:
    plugin, report = load(document)
    assert plugin.servers == ()
    assert report.state == "loaded"
    assert states(report) == {"mcp.json": "skipped"}


def test_two_placeholders_are_expanded_once_and_nothing_else(load: Load, root: Path, tmp_path: Path) -> None:
    data = tmp_path / "${PLUGIN_ROOT}"
    data.mkdir()
    plugin, _ = load(
        main={
            "type": "stdio",
            "command": "./bin/server",
            "args": ["${PLUGIN_ROOT}/a", "${PLUGIN_DATA}", "${HOME} $PLUGIN_ROOT ${plugin_root}"],
            "env": {"${PLUGIN_ROOT}": "${PLUGIN_ROOT}${PLUGIN_ROOT}"},
            "cwd": "${PLUGIN_DATA}/work",
        }
    )
    [server] = plugin.servers
    assert isinstance(server, StdioServer)
    launch = server.launch(data)
    assert launch.command == str(root / "bin" / "server")
    assert launch.args == (f"{root}/a", str(data), "${HOME} $PLUGIN_ROOT ${plugin_root}")
    assert launch.env == {"${PLUGIN_ROOT}": f"{root}{root}", "PLUGIN_ROOT": str(root), "PLUGIN_DATA": str(data)}
    assert launch.cwd == data / "work"


def test_a_server_runs_in_the_plugin_unless_it_says_otherwise(load: Load, root: Path, tmp_path: Path) -> None:
    plugin, _ = load(main={"type": "stdio", "command": "python3"})
    [server] = plugin.servers
    assert isinstance(server, StdioServer)
    launch = server.launch(tmp_path)
    assert (launch.command, launch.cwd) == ("python3", root)


def test_a_link_out_of_the_data_is_refused_at_the_start(load: Load, tmp_path: Path) -> None:
    plugin, _ = load(main={"type": "stdio", "command": "x", "cwd": "${PLUGIN_DATA}/out"})
    [server] = plugin.servers
    assert isinstance(server, StdioServer)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "out").symlink_to(tmp_path)
    with pytest.raises(RegistryError):
        server.launch(tmp_path / "data")


def test_a_plugin_in_code_names_its_servers_and_counts_them() -> None:
    plugin = Plugin("tools", servers=(StdioServer("main", "/usr/bin/server"), HttpServer("far", "https://example.com")))
    assert [server.full_name for server in plugin.servers] == ["tools/main", "tools/far"]
    assert states(plugin.report) == {"main": "loaded", "far": "loaded"}
    assert plugin.digest != Plugin("tools").digest
