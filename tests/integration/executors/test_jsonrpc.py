"""The JSON-RPC contract over a real socket."""

import asyncio
import json
import time
from collections.abc import AsyncGenerator
from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from tests.integration.executors.calls import Peer, rpc_body
from tests.integration.executors.conftest import Site
from tests.unit.hooks.samples import command_context

IN, PRE = "command.invoked.in", "command.invoked.pre"
HEALTH = rpc_body("hooks.health", {})
OTHER = SecretStr("another secret")


async def test_a_command_runs_and_answers_a_patch(site: Site, peer: Peer) -> None:
    answer = await peer.call(IN, {"context": command_context()})
    assert answer["id"] == "n-1"
    assert answer["result"] == {
        "result": {"reply": "Deployed to staging.", "data": None, "effects": [], "outcome": "done"}
    }


async def test_a_hook_replaces_fields_or_aborts_with_its_reason(peer: Peer) -> None:
    answer = await peer.call(PRE, {"context": command_context(phase="pre", arguments=" x ")})
    assert answer["result"] == {"arguments": "x"}
    answer = await peer.call(PRE, {"context": command_context(phase="pre")})
    assert answer["result"] is None
    answer = await peer.call(PRE, {"context": command_context(phase="pre", arguments="forbidden")})
    reason = "that word is forbidden"
    assert answer["error"] == {"code": -32010, "message": reason, "data": {"reason": reason}}


async def test_health_names_what_is_served(peer: Peer) -> None:
    health = (await peer.call("hooks.health"))["result"]
    assert health["name"] == "deploys"
    assert health["points"] == [PRE, IN]
    assert health["commands"][0] == {
        "name": "deploy",
        "description": "Deploy the current build",
        "argument_hint": "<env>",
    }
    assert (await peer.get("/healthz")).json() == {"status": "ok"}


async def test_a_body_that_raises_tells_fixed_words_and_a_correlation_id(
    peer: Peer, caplog: pytest.LogCaptureFixture
) -> None:
    answer = await peer.call(IN, {"context": command_context("boom")})
    assert answer["error"] == {
        "code": -32603,
        "message": "the executor failed",
        "data": {"correlation_id": "corr-1"},
    }
    assert any("corr-1" in record.getMessage() for record in caplog.records)
    assert (await peer.call(IN, {"context": command_context()}))["result"]


async def test_a_body_that_hangs_fails_at_its_deadline(peer: Peer) -> None:
    answer = await peer.call(IN, {"context": command_context("hang")})
    assert answer["error"]["code"] == -32603


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("command.invoked.post", {"context": command_context(phase="post")}, -32601),
        ("nope", {}, -32601),
        (IN, {"context": command_context("unknown")}, -32601),
        (IN, {}, -32602),
        (IN, [], -32602),
        (IN, [command_context(), 1], -32602),
        (IN, {"context": "x"}, -32602),
        (IN, {"context": command_context(), "more": 1}, -32602),
        (IN, {"context": command_context(phase="pre")}, -32602),
        (IN, 7, -32600),
    ],
)
async def test_a_call_that_makes_no_sense_is_an_error_of_json_rpc(
    site: Site, peer: Peer, method: str, params: Any, code: int
) -> None:
    answer = await peer.call(method, params)
    assert answer["error"]["code"] == code
    assert "result" not in answer
    assert site.deployed == []


CALL = json.loads(rpc_body(IN, {"context": command_context()}))


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", -32700),
        (b"{", -32700),
        (b"\xff", -32700),
        (b'{"jsonrpc":"2.0","id":NaN}', -32700),
        (b'{"jsonrpc":"2.0","id":"\\ud800"}', -32700),
        (b"[" * 100_000, -32700),
        (b"[]", -32600),
        (json.dumps([CALL]).encode(), -32600),
        (json.dumps([CALL] * 100).encode(), -32600),
        (b"null", -32600),
        (b'"x"', -32600),
        (json.dumps({**CALL, "id": None}).encode(), -32600),
        (json.dumps({**CALL, "id": True}).encode(), -32600),
        (json.dumps({**CALL, "id": {}}).encode(), -32600),
        (json.dumps({**CALL, "id": "x" * 1000}).encode(), -32600),
        (json.dumps({name: CALL[name] for name in CALL if name != "id"}).encode(), -32600),
        (json.dumps({**CALL, "jsonrpc": "1.0"}).encode(), -32600),
        (json.dumps({**CALL, "method": 7}).encode(), -32600),
    ],
    ids=lambda value: str(value)[:40],
)
async def test_what_is_no_single_call_is_never_run(site: Site, peer: Peer, body: bytes, code: int) -> None:
    response = await peer.post(body)
    assert response.status_code == 200
    assert response.json()["error"]["code"] == code
    assert response.json()["id"] is None
    assert site.deployed == []


async def _status(peer: Peer, **changes: Any) -> tuple[int, str]:
    response = await peer.post(HEALTH, peer.headers(HEALTH, **changes))
    return response.status_code, response.json()["error"]["status"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"secret": OTHER},
        {"key_id": "others"},
        {"timestamp": 0},
        {"timestamp": 10**11},
        {"method": "GET"},
        {"path": "/"},
    ],
    ids=str,
)
async def test_a_call_that_is_signed_wrongly_is_401(peer: Peer, wrong: dict[str, Any]) -> None:
    assert await _status(peer, **wrong) == (401, "UNAUTHENTICATED")


@pytest.mark.parametrize("skew", [-400, 400])
async def test_a_timestamp_far_from_the_clock_is_401(peer: Peer, skew: int) -> None:
    assert await _status(peer, timestamp=int(time.time()) + skew) == (401, "UNAUTHENTICATED")


async def test_an_unsigned_call_is_401(peer: Peer) -> None:
    response = await peer.post(HEALTH, {"Content-Type": "application/json"})
    assert response.status_code == 401
    assert response.json()["error"]["code"] == 401


async def test_a_changed_body_is_401(peer: Peer) -> None:
    assert (await peer.post(HEALTH + b" ", peer.headers(HEALTH))).status_code == 401


async def test_a_signature_that_is_used_again_is_401_and_runs_nothing(site: Site, peer: Peer) -> None:
    body = rpc_body(IN, {"context": command_context()})
    headers = peer.headers(body)
    assert (await peer.post(body, headers)).status_code == 200
    assert (await peer.post(body, headers)).status_code == 401
    assert len(site.deployed) == 1


async def test_the_older_secret_is_good_until_it_is_taken_away(peer: Peer) -> None:
    assert (await peer.call("hooks.health", secret=SecretStr("an older one")))["result"]


async def test_a_retry_gets_the_same_answer_and_runs_nothing(site: Site, peer: Peer) -> None:
    params = {"context": command_context()}
    first = await peer.call(IN, params, delivery_id="d-1", attempt=1)
    assert await peer.call(IN, params, delivery_id="d-1", attempt=2) == first
    assert site.deployed == ["d-1"]


async def test_a_retry_waits_for_the_call_that_still_runs(site: Site, peer: Peer) -> None:
    site.may_deploy.clear()
    params = {"context": command_context()}
    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        calls = [group.create_task(peer.call(IN, params, delivery_id="d-1", attempt=attempt)) for attempt in (1, 2)]
        await peer.call("hooks.health")  # both are on their way
        site.may_deploy.set()
    assert calls[0].result() == calls[1].result()
    assert len(site.deployed) == 1


async def test_a_caller_that_goes_away_does_not_undo_the_call(site: Site, peer: Peer) -> None:
    site.may_deploy.clear()
    params = {"context": command_context()}
    async with asyncio.timeout(30):
        lost = asyncio.ensure_future(peer.call(IN, params, delivery_id="d-1"))
        while not site.deployed:
            await peer.call("hooks.health")
        lost.cancel()
        site.may_deploy.set()
        answer = await peer.call(IN, params, delivery_id="d-1", attempt=2)
    assert answer["result"]["result"]["reply"] == "Deployed to staging."
    assert site.deployed == ["d-1"]


BIG = 2 << 20


async def _chunks() -> AsyncGenerator[bytes]:
    for _ in range(BIG >> 16):
        yield b"x" * (1 << 16)


@pytest.mark.parametrize("is_chunked", [False, True])
async def test_a_body_over_1_mib_is_413(site: Site, is_chunked: bool) -> None:
    async with httpx.AsyncClient(timeout=30, trust_env=False) as client:
        content = _chunks() if is_chunked else b"x" * BIG
        response = await client.post(site.url, content=content, headers={"Content-Type": "application/json"})
    assert response.status_code == 413
    assert response.json()["error"]["status"] == "BODY_TOO_LARGE"


async def test_a_body_that_is_not_json_is_415(peer: Peer) -> None:
    response = await peer.post(HEALTH, {**peer.headers(HEALTH), "Content-Type": "text/plain"})
    assert response.status_code == 415


async def test_what_is_not_posted_is_405(site: Site, peer: Peer) -> None:
    response = await peer.get("/rpc")
    assert (response.status_code, response.headers["allow"]) == (405, "POST")


async def test_a_media_type_with_a_charset_is_fine_and_so_is_the_root_path(site: Site, peer: Peer) -> None:
    peer.url = peer.url.join("/")
    headers = {**peer.headers(HEALTH), "Content-Type": "application/json; charset=utf-8"}
    assert (await peer.post(HEALTH, headers)).json()["result"]["name"] == "deploys"


async def test_the_query_is_signed_too(peer: Peer) -> None:
    peer.url = peer.url.copy_with(query=b"a=%20b")
    assert (await peer.call("hooks.health"))["result"]
    assert await _status(peer, path="/rpc") == (401, "UNAUTHENTICATED")


@pytest.mark.parametrize("path", ["/rpc/", "/nope", "/mcp/x", "/healthz/"])
async def test_any_other_path_is_404_and_leads_nowhere(peer: Peer, path: str) -> None:
    peer.url = peer.url.join(path)
    response = await peer.post(HEALTH)
    assert response.status_code == 404
    assert response.json()["error"]["status"] == "NOT_FOUND"
