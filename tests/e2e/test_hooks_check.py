"""`tiny-harness hooks check` as a third party runs it: a process of its own, against services good and bad."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.integration.remote_hooks.contexts import SECRET
from tests.integration.remote_hooks.server import listening
from tests.integration.remote_hooks.small_service import FLAWS, SmallService
from tests.tools import require_tool
from tiny_harness.hooks.conformance import RULES

PATIENCE_S = 60
ROOT = Path(__file__).parents[2]
KEYED = {"TINY_HARNESS_HOOK_SECRET_TEST": SECRET.get_secret_value()}
SIGNING = ("--key-id", "test")

SIX_FLAWS = (
    "takes any signature",
    "takes a repeated signature",
    "runs batches",
    "takes oversize bodies",
    "replaces a forbidden field",
    "leaks an exception's text",
    "hangs",
    "runs twice for one delivery",
)

DEPLOYS = """
from tiny_harness.effects import CommandResult
from tiny_harness.errors import HookAbort
from tiny_harness.executors import ExecutorApp

app = ExecutorApp("deploys", keys=["test"])


@app.command("deploy", argument_hint="<env>", description="Deploy the current build")
async def deploy(context):
    return CommandResult(reply="deployed")


@app.hook("request.received.pre")
def polite(context):
    if "abort" in context.text:
        raise HookAbort("not like this")
    return {"text": context.text + ", please"}


@app.hook("task.created.pre")
def broken(context):
    raise ValueError("a secret detail")
"""


async def run(*args: str, env: Mapping[str, str] = KEYED) -> tuple[int, str, str]:
    """Run `tiny-harness hooks check`; status, output and errors."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tiny_harness", "hooks", "check", *args),
        env={**os.environ, **env},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(PATIENCE_S):
        out, err = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


@asynccontextmanager
async def process_serving(*command: str, cwd: Path, env: Mapping[str, str] = KEYED) -> AsyncGenerator[str]:
    """Run a service that prints `serving URL`, while the block runs; its URL."""
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=cwd,
        env={**os.environ, **env},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(PATIENCE_S):
            said, _, url = (await process.stdout.readline()).decode().strip().partition(" ")
        assert said == "serving"
        yield url
    finally:
        if process.returncode is None:
            process.terminate()
        async with asyncio.timeout(PATIENCE_S):
            await process.wait()


async def test_a_good_service_conforms():
    async with listening(SmallService()) as url:
        status, out, err = await run(url, *SIGNING)
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].split() == ["RULE", "OUTCOME", "WHY"]
    assert [line.split()[:2] for line in lines[1:-2]] == [[rule.name, "ok"] for rule in RULES["jsonrpc"]]
    assert lines[-1] == "conforms"


@pytest.mark.parametrize("flaw", SIX_FLAWS)
async def test_a_broken_service_fails_by_the_name_of_the_rule(flaw: str):
    async with listening(SmallService(flaw)) as url:
        status, out, _ = await run(url, *SIGNING, "--json")
    assert status == 1
    findings = json.loads(out)
    assert {each["rule"] for each in findings if each["outcome"] == "failed"} == FLAWS[flaw]
    assert all(each["why"] and each["says"] for each in findings)


async def test_a_table_names_the_broken_rule_and_says_it():
    async with listening(SmallService("runs batches")) as url:
        status, out, _ = await run(url, *SIGNING)
    assert status == 1
    assert "batch: A batch is answered with error -32600, and nothing in it is run." in out
    assert out.splitlines()[-1] == f"1 of {len(RULES['jsonrpc'])} rules are broken"


@pytest.mark.parametrize("transport", ["jsonrpc", "mcp"])
async def test_the_sdk_s_own_server_conforms(transport: str, tmp_path: Path):
    (tmp_path / "deploys.py").write_text(DEPLOYS)
    serve = (sys.executable, "-m", "tiny_harness", "hooks", "serve", "deploys:app", "--bind", "127.0.0.1:0")
    async with process_serving(*serve, cwd=tmp_path) as url:
        url = url if transport == "jsonrpc" else url.replace("/rpc", "/mcp")
        status, out, err = await run(url, "--transport", transport, *SIGNING, "--json")
    assert (status, err) == (0, ""), out
    assert {each["outcome"] for each in json.loads(out)} == {"ok"}


async def test_the_example_in_another_language_conforms():
    node = require_tool("node")
    folder = ROOT / "docs" / "examples" / "node-executor"
    env = {"TINY_HARNESS_HOOK_SECRET_NODE": SECRET.get_secret_value()}
    async with process_serving(node, "server.mjs", "127.0.0.1:0", cwd=folder, env=env) as url:
        status, out, err = await run(url, "--key-id", "node", "--json", env=env)
    assert (status, err) == (0, ""), out
    assert "failed" not in {each["outcome"] for each in json.loads(out)}


async def test_a_dead_address_is_one_clear_line():
    async with listening(SmallService()) as url:
        pass
    status, out, err = await run(url, *SIGNING)
    assert (status, out) == (1, "")
    assert err.startswith(f"tiny-harness: {url} cannot be connected to")
    assert len(err.splitlines()) == 1


async def test_without_a_secret_nothing_is_checked():
    async with listening(SmallService()) as url:
        status, out, err = await run(url, "--key-id", "some.where")
    assert (status, out) == (2, "")
    assert "TINY_HARNESS_HOOK_SECRET_SOME_WHERE" in err
    assert "--unsigned" in err


async def test_without_a_key_nothing_is_checked():
    status, _, err = await run("http://127.0.0.1:1/")
    assert status == 2
    assert "--key-id" in err


async def test_unsigned_calls_are_made_when_told_so():
    async with listening(SmallService("takes unsigned calls")) as url:
        status, out, _ = await run(url, "--unsigned", "--json")
    assert status == 0
    assert {each["rule"] for each in json.loads(out) if each["outcome"] == "skipped"} >= {"unsigned", "replay"}


@pytest.mark.parametrize("url", ["http://example.org/hooks", "hooks", "ftp://localhost/"])
async def test_an_address_that_no_harness_would_call_is_a_usage_error(url: str):
    status, _, err = await run(url, "--unsigned")
    assert status == 2
    assert len(err.splitlines()) == 1
