"""Every operation with every kind of credential, over both bindings and both ways to sign in (DESIGN: security)."""

import os
import statistics
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from a2a.server.routes.jsonrpc_dispatcher import JsonRpcDispatcher

from tests.integration.gateway.issuer import AUDIENCE, ISSUER, Issuer, serving_set
from tests.integration.gateway.served import BINDINGS, Caller, Gateway, Told, envelope, running_gateway
from tests.security.test_gateway_access import ABOUT_A_TASK, CONTROLS, NOT_ABOUT_A_TASK
from tiny_harness.ext import task
from tiny_harness.settings import Settings
from tiny_harness.tokens import create_token

pytestmark = pytest.mark.timeout(120)

Json = dict[str, Any]

METHODS = sorted({*ABOUT_A_TASK, *NOT_ABOUT_A_TASK})
ACTS = {**{method: (method, ABOUT_A_TASK[method]) for method in ABOUT_A_TASK}}
ACTS |= {action: ("SendMessage", CONTROLS[action]) for action in CONTROLS}
"""What can be done to a task: (operation, its parameters for a task)."""

WRONG = {"none", "bad", "expired", "revoked", "another scheme", "two at once"}
LONG = 50_000
"""Characters of the task's description: to load and read it for somebody who is not on it would take its time."""
PAIRS = 200 if os.environ.get("TINY_HARNESS_SOAK") else 25


@dataclass
class Guarded:
    """A gateway that lets only signed-in callers in, and what they hold."""

    gateway: Gateway
    credentials: Mapping[str, list[tuple[bytes, bytes]]]
    """Authorization headers, by what is special about them."""
    task_id: str = ""

    def caller(self, binding: str, name: str) -> Caller:
        """Somebody who holds a good credential of their own."""
        [(_, value)] = self.credentials[name]
        return Caller(self.gateway, binding, {"Authorization": value.decode(), "A2A-Version": "1.0"})

    async def call(self, binding: str, credential: str, method: str, params: Json, **more: str) -> Told:
        """Call an operation with some credential, sent as it is."""
        caller = Caller(self.gateway, binding, {"A2A-Version": "1.0", **more})
        request = caller._request(method, params, {})
        request.headers = httpx.Headers([*request.headers.raw, *self.credentials[credential]])
        return caller._told(await self.gateway.http.send(request))


async def by_token(gateway: Gateway) -> dict[str, str]:
    made = {name: await create_token(gateway.store, name) for name in ("ann", "wanda", "eve", "gone")}
    late = await create_token(gateway.store, "ann", lifetime=timedelta(milliseconds=1))
    await gateway.store.revoke_token(made["gone"].token_id)
    tokens = {name: token.token for name, token in made.items()}
    return {**tokens, "revoked": tokens["gone"], "expired": late.token, "bad": tokens["ann"][:-2] + "xx"}


def by_jwt(issuer: Issuer) -> dict[str, str]:
    tokens = {name: issuer.sign(name) for name in ("ann", "wanda", "eve")}
    issuer.rotate("gone")
    revoked = issuer.sign("ann")  # what revoking is here: its key is no longer in the set
    del issuer.keys["gone"]
    forger = Issuer()
    return {**tokens, "revoked": revoked, "expired": issuer.sign("ann", kid="k1", exp=1), "bad": forger.sign("ann")}


@pytest.fixture(scope="module", params=["tokens", "jwt"])
async def guarded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Guarded]:
    folder: Path = tmp_path_factory.mktemp("gateway")
    async with AsyncExitStack() as stack:
        issuer = Issuer()
        auth: Json = {"mode": request.param}
        if request.param == "jwt":
            url = await stack.enter_async_context(serving_set(issuer))
            auth |= {"issuer": ISSUER, "audience": AUDIENCE, "jwks_url": url}
        settings = Settings.model_validate({"store": {"sqlite_path": folder / "store.db"}, "auth": auth})
        gateway = await stack.enter_async_context(running_gateway(settings, folder))
        tokens = await by_token(gateway) if request.param == "tokens" else by_jwt(issuer)
        headers = {name: [(b"Authorization", f"Bearer {token}".encode())] for name, token in tokens.items()}
        headers["none"] = []
        headers["another scheme"] = [(b"Authorization", f"Basic {tokens['ann']}".encode())]
        headers["two at once"] = headers["ann"] * 2
        found = Guarded(gateway, headers)
        data = {"participants": [{"id": "wanda", "role": "watcher"}], "description": "x" * LONG}
        start = envelope({"kind": "task", "payload": data}, "start")
        started = await found.caller("JSONRPC", "ann").call("SendMessage", {"message": start})
        found.task_id = started.result["task"]["id"]
        yield found


def test_every_operation_of_the_protocol_is_in_the_matrix() -> None:
    assert set(METHODS) == set(JsonRpcDispatcher.METHOD_TO_MODEL)


@pytest.mark.parametrize("binding", BINDINGS)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("credential", sorted(WRONG))
async def test_a_wrong_credential_lets_nobody_in(guarded: Guarded, credential: str, method: str, binding: str) -> None:
    params = ABOUT_A_TASK[method](guarded.task_id) if method in ABOUT_A_TASK else {}
    before = len(guarded.gateway.engine.deliveries)
    told = await guarded.call(binding, credential, method, params)
    assert (told.status, told.body["error"]["status"]) == (401, "UNAUTHENTICATED")
    challenge = told.headers["www-authenticate"]
    assert challenge.startswith("Bearer")
    assert ("invalid_token" in challenge) == (credential in ("bad", "expired", "revoked"))
    assert guarded.task_id not in told.text
    assert len(guarded.gateway.engine.deliveries) == before


@pytest.mark.parametrize("binding", BINDINGS)
@pytest.mark.parametrize("method", METHODS)
async def test_nobody_speaks_in_the_name_of_another(guarded: Guarded, method: str, binding: str) -> None:
    params = ABOUT_A_TASK[method](guarded.task_id) if method in ABOUT_A_TASK else {}
    before = len(guarded.gateway.engine.deliveries)
    for name in ("ann", "EVE", "tiny-harness", ""):
        told = await guarded.call(binding, "eve", method, params, **{"X-Participant-Id": name})
        assert (told.status, told.body["error"]["status"]) == (403, "FOREIGN_PARTICIPANT"), name
    assert len(guarded.gateway.engine.deliveries) == before


@pytest.mark.parametrize("binding", BINDINGS)
@pytest.mark.parametrize("act", sorted(ACTS))
async def test_what_is_anothers_looks_missing(guarded: Guarded, act: str, binding: str) -> None:
    method, params = ACTS[act]
    missing_id = guarded.task_id[:-4] + "0000"
    foreign, missing = [
        await guarded.caller(binding, "eve").call(method, params(name)) for name in (guarded.task_id, missing_id)
    ]
    told = foreign.text.replace(guarded.task_id, missing_id)
    assert (foreign.status, told, _shown(foreign)) == (missing.status, missing.text, _shown(missing))
    if "Push" not in method:
        assert foreign.info["reason"] == "TASK_NOT_FOUND"


def _caller_on(card: Told) -> Json:
    """Whom an extended card is for."""
    [found] = [one for one in card.result["capabilities"]["extensions"] if one["uri"] == task.URI]
    return found["params"]["caller"]


def _shown(told: Told) -> set[str]:
    """The headers that a stranger sees, and how long the answer is."""
    return {f"{name}: {value}" for name, value in told.headers.items() if name not in ("date",)}


@pytest.mark.parametrize("binding", BINDINGS)
@pytest.mark.parametrize("act", sorted(ACTS))
async def test_a_watcher_reads_and_does_nothing_else(guarded: Guarded, act: str, binding: str) -> None:
    method, params = ACTS[act]
    wanda = guarded.caller(binding, "wanda")
    if method == "SubscribeToTask":
        async with wanda.stream(method, params(guarded.task_id)) as events:
            assert (await events.next()).payload["task"]["id"] == guarded.task_id
        return
    told = await wanda.call(method, params(guarded.task_id))
    if method == "GetTask":
        assert told.result["id"] == guarded.task_id
    elif "Push" not in method:
        assert told.info["metadata"] == {"code": "role_not_permitted", "role": "watcher"}


@pytest.mark.parametrize("binding", BINDINGS)
async def test_a_list_and_the_extended_card_are_the_callers_own(guarded: Guarded, binding: str) -> None:
    for name, total in (("ann", 1), ("wanda", 1), ("eve", 0)):
        caller = guarded.caller(binding, name)
        assert (await caller.call("ListTasks")).result.get("totalSize", 0) == total
        assert _caller_on(await caller.call("GetExtendedAgentCard")) == {"id": name, "kind": "human"}


async def test_the_other_doors_ask_for_credentials_too(guarded: Guarded) -> None:
    url, http = guarded.gateway.url, guarded.gateway.http
    for path in ("/_monitor", "/mcp", f"/rest/tasks/{guarded.task_id}:ack", "/nowhere"):
        for credential in sorted(WRONG):
            headers = [*guarded.credentials[credential], (b"A2A-Version", b"1.0")]
            assert (await http.post(url + path, json={}, headers=headers)).status_code == 401, (path, credential)
    for path in ("/.well-known/agent-card.json", "/healthz", "/readyz"):
        assert (await http.get(url + path)).status_code == 200
    body = {"jsonrpc": "2.0", "id": 1, "method": "AckTask", "params": {"id": guarded.task_id}}
    eve = await http.post(f"{url}/rpc", json=body, headers=guarded.caller("JSONRPC", "eve").headers)
    assert eve.json()["error"]["code"] == -32001


async def test_the_unix_socket_is_no_way_around(guarded: Guarded) -> None:
    transport = httpx.AsyncHTTPTransport(uds=str(guarded.gateway.socket))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
        headers = {"A2A-Version": "1.0", "X-Participant-Id": "ann"}
        assert (await http.get("/rest/tasks", headers=headers)).status_code == 401
        own = guarded.caller("HTTP+JSON", "ann").headers
        assert (await http.get("/rest/tasks", headers=own)).status_code == 200


async def test_the_card_declares_the_scheme(guarded: Guarded) -> None:
    card = (await guarded.gateway.http.get(f"{guarded.gateway.url}/.well-known/agent-card.json")).json()
    scheme = card["securitySchemes"]["bearer"]["httpAuthSecurityScheme"]
    assert scheme["scheme"] == "Bearer"
    assert scheme.get("bearerFormat") == ("JWT" if guarded.gateway.settings.auth.mode == "jwt" else None)
    assert card["securityRequirements"] == [{"schemes": {"bearer": {}}}]


async def test_a_token_is_refused_from_the_moment_that_it_is_revoked(tmp_path: Path) -> None:
    settings = Settings.model_validate({"store": {"sqlite_path": tmp_path / "s.db"}, "auth": {"mode": "tokens"}})
    async with running_gateway(settings, tmp_path) as gateway:
        made = await create_token(gateway.store, "ann", "agent")
        ann = Caller(gateway, "JSONRPC", {"Authorization": f"Bearer {made.token}", "A2A-Version": "1.0"})
        shown = _caller_on(await ann.call("GetExtendedAgentCard"))
        assert shown == {"id": "ann", "kind": "agent"}, "the token says what its holder is"
        assert await gateway.store.revoke_token(made.token_id)
        assert (await ann.call("ListTasks")).status == 401
        assert made.token.encode() not in (tmp_path / "s.db").read_bytes() + (tmp_path / "s.db-wal").read_bytes()


@pytest.mark.parametrize("method", ["GetTask", "SendMessage", "CancelTask"])
async def test_a_foreign_task_takes_as_long_as_a_missing_one(guarded: Guarded, method: str) -> None:
    """The full size is measured alone (`make soak`); beside other tests only what is coarse can be told."""
    missing_id = guarded.task_id[:-4] + "0000"
    eve = guarded.caller("JSONRPC", "eve")
    took: dict[str, list[float]] = {guarded.task_id: [], missing_id: []}
    for number in range(PAIRS):
        for name in (guarded.task_id, missing_id) if number % 2 else (missing_id, guarded.task_id):
            start = time.perf_counter()
            await eve.call(method, ABOUT_A_TASK[method](name))
            took[name].append(time.perf_counter() - start)
    foreign, missing = [statistics.median(times) for times in took.values()]
    bound = 1.1 if PAIRS == 200 else 3.0
    assert 1 / bound < foreign / missing < bound, (foreign, missing)
