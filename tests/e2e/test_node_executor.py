"""The example in another language keeps the contract: Node, with nothing but its standard library."""

import asyncio
import os
import time
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.integration.executors.calls import SECRET, Peer, rpc_body
from tests.tools import require_tool
from tests.unit.hooks.samples import command_context
from tiny_harness.hooks.conformance import check

SERVER = Path(__file__).parents[2] / "docs" / "examples" / "node-executor" / "server.mjs"
VARIABLE = "TINY_HARNESS_HOOK_SECRET_NODE"
PATIENCE_S = 60
IN, PRE = "command.invoked.in", "command.invoked.pre"
HEALTH = rpc_body("hooks.health", {})


async def start(secret: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        require_tool("node"),
        str(SERVER),
        "127.0.0.1:0",
        env={**os.environ, VARIABLE: secret},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


@pytest.fixture(scope="module")
async def node_url() -> AsyncGenerator[str]:
    process = await start(f"{SECRET.get_secret_value()},an older one")
    assert process.stdout is not None
    try:
        async with asyncio.timeout(PATIENCE_S):
            said, _, url = (await process.stdout.readline()).decode().strip().partition(" ")
        assert said == "serving"
        yield url
    finally:
        process.terminate()
        async with asyncio.timeout(PATIENCE_S):
            await process.wait()


@pytest.fixture
async def peer(node_url: str) -> AsyncGenerator[Peer]:
    async with httpx.AsyncClient(timeout=PATIENCE_S, trust_env=False) as client:
        yield Peer(client, node_url, "node")


async def test_it_says_what_it_serves(peer: Peer) -> None:
    assert (await peer.call("hooks.health"))["result"] == {
        "name": "node",
        "points": [IN, PRE],
        "commands": [{"name": "greet", "description": "Greet somebody", "argument_hint": "<name>"}],
    }
    assert (await peer.get("/healthz")).json() == {"status": "ok"}


async def test_its_command_runs(peer: Peer) -> None:
    answer = await peer.call(IN, {"context": command_context("greet", arguments="Ada")})
    assert answer["id"] == "n-1"
    assert answer["result"] == {"result": {"reply": "Hello, Ada!", "data": {"name": "Ada"}}}


async def test_its_hook_replaces_refuses_or_says_nothing(peer: Peer) -> None:
    answer = await peer.call(PRE, {"context": command_context(phase="pre", arguments="a   b ")})
    assert answer["result"] == {"arguments": "a b"}
    answer = await peer.call(PRE, {"context": command_context(phase="pre")})
    assert answer["result"] is None
    answer = await peer.call(PRE, {"context": command_context(phase="pre", arguments="Forbidden")})
    assert answer["error"]["code"] == -32010
    assert answer["error"]["message"] == answer["error"]["data"]["reason"]


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("nope", {}, -32601),
        ("__proto__", {}, -32601),
        (IN, {"context": command_context("constructor")}, -32601),
        (IN, {}, -32602),
        (IN, {"context": command_context("greet", phase="pre")}, -32602),
    ],
)
async def test_a_call_that_makes_no_sense_is_an_error(peer: Peer, method: str, params: Any, code: int) -> None:
    assert (await peer.call(method, params))["error"]["code"] == code


@pytest.mark.parametrize(
    ("body", "code"),
    [(b"{", -32700), (b"\xff", -32700), (b"[" + HEALTH + b"]", -32600), (b'{"jsonrpc":"2.0"}', -32600)],
)
async def test_what_is_no_single_call_is_refused(peer: Peer, body: bytes, code: int) -> None:
    answer = (await peer.post(body)).json()
    assert answer["error"]["code"] == code
    assert answer["id"] is None


@pytest.mark.parametrize("wrong", [{"key_id": "others"}, {"path": "/"}, {"timestamp": 0}, {"method": "PUT"}], ids=str)
async def test_a_call_that_is_signed_wrongly_is_401(peer: Peer, wrong: dict[str, Any]) -> None:
    response = await peer.post(HEALTH, peer.headers(HEALTH, **wrong))
    assert response.status_code == 401
    assert response.json()["error"]["status"] == "UNAUTHENTICATED"


async def test_unsigned_changed_and_stale_calls_are_401(peer: Peer) -> None:
    assert (await peer.post(HEALTH, {"Content-Type": "application/json"})).status_code == 401
    assert (await peer.post(HEALTH + b" ", peer.headers(HEALTH))).status_code == 401
    for skew in (-400, 400):
        stale = peer.headers(HEALTH, timestamp=int(time.time()) + skew)
        assert (await peer.post(HEALTH, stale)).status_code == 401


async def test_a_signature_is_good_once(peer: Peer) -> None:
    headers = peer.headers(HEALTH)
    assert [(await peer.post(HEALTH, headers)).status_code for _ in range(2)] == [200, 401]


async def test_a_retry_gets_the_same_answer(peer: Peer) -> None:
    first = await peer.call(IN, {"context": command_context("greet", arguments="Ada")}, delivery_id="same", attempt=1)
    # Another text shows that nothing ran: the answer is the first one's.
    again = await peer.call(IN, {"context": command_context("greet", arguments="Bob")}, delivery_id="same", attempt=2)
    assert again == first


async def test_methods_sizes_and_media_types_are_bounded(peer: Peer) -> None:
    response = await peer.get("/rpc")
    assert (response.status_code, response.headers["allow"]) == (405, "POST")
    big = b"x" * (2 << 20)
    assert (await peer.post(big, {"Content-Type": "application/json"})).status_code == 413
    assert (await peer.post(HEALTH, {**peer.headers(HEALTH), "Content-Type": "text/plain"})).status_code == 415


async def test_it_passes_the_conformance_check(node_url: str) -> None:
    findings = await check(node_url, "jsonrpc", key_id="node", secret=SECRET)
    assert {finding.rule: finding.why for finding in findings if finding.outcome == "failed"} == {}
    assert {finding.rule for finding in findings if finding.outcome == "ok"} >= {"call", "patch", "abort", "once"}


async def test_it_does_not_start_without_a_secret() -> None:
    process = await start(" , ")
    async with asyncio.timeout(PATIENCE_S):
        _, errors = await process.communicate()
    assert process.returncode == 2
    assert VARIABLE in errors.decode()
