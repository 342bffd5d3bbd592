"""How a server starts: with a secret, or not at all; and `services/hooks`, as a process of its own."""

import asyncio
import json
import os
import re
import sys
from pathlib import Path

import httpx
import pytest

from tests.integration.executors.calls import SECRET, Peer, rpc_body
from tests.unit.hooks.samples import command_context
from tiny_harness.errors import ConfigError
from tiny_harness.executors import ExecutorApp, load_app, serving_executors
from tiny_harness.hooks.conformance import check
from tiny_harness.hooks.declaration import Transport
from tiny_harness_hooks import create_app

VARIABLE = "TINY_HARNESS_HOOK_SECRET_DEPLOYS"
HEALTH = rpc_body("hooks.health", {})
JSON = {"Content-Type": "application/json"}
PATIENCE_S = 60
ROOT = Path(__file__).parents[3]
NAMESPACE = "io.github.madarauchiha-314.tiny-harness"


async def broken_rules(url: str, transport: Transport = "jsonrpc") -> dict[str, str]:
    """Run the conformance check; the rules that are broken, and why."""
    findings = await check(url, transport, key_id="deploys", secret=SECRET)
    assert findings
    return {finding.rule: finding.why for finding in findings if finding.outcome == "failed"}


def deploys() -> ExecutorApp:
    app = ExecutorApp("deploys")
    app.command("deploy")(lambda context: "done")
    return app


async def test_without_a_secret_nothing_is_served_and_the_variable_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    with pytest.raises(ConfigError, match=VARIABLE):
        async with serving_executors(deploys(), "127.0.0.1:0"):
            pass


@pytest.mark.parametrize("bind", ["0.0.0.0:0", "[::]:0", "example.org:0", "10.1.2.3:0"])
async def test_unsigned_calls_are_for_loopback_only(bind: str) -> None:
    with pytest.raises(ConfigError, match="loopback"):
        async with serving_executors(deploys(), bind, unsigned=True):
            pass


@pytest.mark.parametrize("bind", ["", "8090", ":8090", "localhost:", "localhost:x", "localhost:99999"])
async def test_an_address_that_is_none_is_refused(bind: str) -> None:
    with pytest.raises(ConfigError):
        async with serving_executors(deploys(), bind, unsigned=True):
            pass


async def test_what_the_block_raises_comes_out_as_it_is() -> None:
    with pytest.raises(LookupError):
        async with serving_executors(deploys(), "127.0.0.1:0", unsigned=True):
            raise LookupError


async def test_unsigned_calls_are_taken_from_programs_and_not_from_web_pages() -> None:
    async with (
        serving_executors(deploys(), "127.0.0.1:0", unsigned=True) as url,
        httpx.AsyncClient(timeout=PATIENCE_S, trust_env=False) as client,
    ):
        assert (await client.post(url, content=HEALTH, headers=JSON)).json()["result"]["name"] == "deploys"
        for strange in ({"Origin": "http://evil.example"}, {"Host": "evil.example"}, {"Host": "evil.example:80"}):
            refused = await client.post(url, content=HEALTH, headers={**JSON, **strange})
            assert refused.status_code == 403, strange


async def test_an_app_is_an_asgi_app_that_takes_signed_calls_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, SECRET.get_secret_value())
    transport = httpx.ASGITransport(deploys())
    async with httpx.AsyncClient(transport=transport, base_url="http://deploys") as client:
        assert (await client.post("/rpc", content=HEALTH, headers=JSON)).status_code == 401
        peer = Peer(client, "http://deploys/rpc", "deploys")
        assert (await peer.call("hooks.health"))["result"]["name"] == "deploys"


async def test_keys_other_than_the_apps_open_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, SECRET.get_secret_value())
    monkeypatch.setenv("TINY_HARNESS_HOOK_SECRET_OTHERS", SECRET.get_secret_value())
    async with (
        serving_executors(deploys(), "127.0.0.1:0") as url,
        httpx.AsyncClient(timeout=PATIENCE_S, trust_env=False) as client,
    ):
        peer = Peer(client, url, "others")
        assert (await peer.post(HEALTH)).status_code == 401


@pytest.mark.parametrize(
    "target", ["", "deploys", "deploys:", ":app", "no_such_module_here:app", "json:app", "json:dumps"]
)
def test_an_app_that_is_not_there_is_an_error_of_configuration(target: str) -> None:
    with pytest.raises(ConfigError):
        load_app(target)


def test_the_example_of_the_guide_is_an_app(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT / "docs" / "examples")
    monkeypatch.setattr(sys, "path", [*sys.path])
    assert [spec.name for spec in load_app("deploys:app").commands] == ["deploy"]


def test_the_guide_shows_the_example_as_it_is() -> None:
    [shown] = re.findall(r"```python\n(.*?)```", (ROOT / "docs/guide/serve-commands.md").read_text(), re.DOTALL)
    _, _, code = (ROOT / "docs/examples/deploys.py").read_text().partition("\n\n")
    assert shown == code


def make_plugin(folder: Path) -> Path:
    """Write a plugin with a command, a hook, and a remote executor that is none of the service's business."""
    space = folder / NAMESPACE
    space.mkdir(parents=True)
    schema = "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json"
    (folder / "plugin.json").write_text(json.dumps({"$schema": schema, "name": "deploys"}))
    commands = [{"name": "deploy", "description": "Deploy", "argument_hint": "<env>"}, {"name": "far"}]
    (space / "commands.json").write_text(json.dumps({"commands": commands}))
    executors = [
        {"name": "run", "point": "command.invoked.in", "command": "deploy", "python": "code.py:deploy"},
        {"name": "tidy", "point": "command.invoked.pre", "python": "code.py:tidy"},
        {"name": "far", "point": "command.invoked.in", "command": "far", "url": "https://far.example/rpc"},
    ]
    (space / "hooks.json").write_text(json.dumps({"executors": executors}))
    code = (
        "from tiny_harness.commands import CommandResult\n\n"
        "def deploy(context):\n    return CommandResult(reply='Deployed to ' + context.arguments)\n\n"
        "async def tidy(context):\n    return {'arguments': context.arguments.strip()}\n"
    )
    for place in (folder, space):
        (place / "code.py").write_text(code)
    return folder


def test_the_service_serves_what_plugins_hold_themselves(tmp_path: Path) -> None:
    app = create_app([make_plugin(tmp_path / "deploys")])
    assert sorted(executor.name for executor in app.executors) == ["deploys/run", "deploys/tidy"]
    assert [spec.name for spec in app.commands] == ["deploy"]


def test_the_service_needs_something_to_serve(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError):
        create_app([tmp_path / "empty"])
    plugin = make_plugin(tmp_path / "deploys")
    with pytest.raises(ConfigError):
        create_app([plugin, plugin])


async def test_the_service_runs_as_a_process_and_stops_when_told(tmp_path: Path) -> None:
    plugin = make_plugin(tmp_path / "deploys")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tiny_harness_hooks", "--plugin", str(plugin), "--bind", "127.0.0.1:0"),
        *("--key", "deploys"),
        env={**os.environ, VARIABLE: SECRET.get_secret_value(), "HOME": str(tmp_path)},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(PATIENCE_S), httpx.AsyncClient(timeout=PATIENCE_S, trust_env=False) as client:
            said, _, url = (await process.stdout.readline()).decode().strip().partition(" ")
            assert said == "serving"
            answer = await Peer(client, url, "deploys").call("command.invoked.in", {"context": command_context()})
            assert answer["result"]["result"]["reply"] == "Deployed to staging"
            assert await broken_rules(url) == {}
            assert await broken_rules(url.removesuffix("rpc") + "mcp", "mcp") == {}
            process.terminate()
            assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert not (tmp_path / ".tiny-harness").exists()


async def test_the_service_does_not_start_without_a_secret(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TINY_HARNESS_HOOK_")}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tiny_harness_hooks", "--plugin", str(make_plugin(tmp_path / "deploys"))),
        env={**environment, "HOME": str(tmp_path)},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(PATIENCE_S):
        said, errors = await process.communicate()
    assert (process.returncode, said) == (2, b"")
    assert b"TINY_HARNESS_HOOK_SECRET_HOOKS" in errors


async def test_the_command_line_serves_an_app_of_this_folder_and_makes_no_home(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from tiny_harness.executors import ExecutorApp\n\n"
        "app = ExecutorApp('deploys')\n\n"
        "@app.command('deploy')\n"
        "def deploy(context):\n    return 'Deployed to ' + context.arguments\n"
    )
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tiny_harness", "hooks", "serve", "mine:app", "--bind", "127.0.0.1:0"),
        cwd=tmp_path,
        env={**os.environ, VARIABLE: SECRET.get_secret_value(), "HOME": str(tmp_path)},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(PATIENCE_S), httpx.AsyncClient(timeout=PATIENCE_S, trust_env=False) as client:
            said, _, url = (await process.stdout.readline()).decode().strip().partition(" ")
            assert said == "serving"
            answer = await Peer(client, url, "deploys").call("command.invoked.in", {"context": command_context()})
            assert answer["result"]["result"]["reply"] == "Deployed to staging"
            assert await broken_rules(url) == {}
            assert await broken_rules(url.removesuffix("rpc") + "mcp", "mcp") == {}
            process.terminate()
            assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert not (tmp_path / ".tiny-harness").exists()
