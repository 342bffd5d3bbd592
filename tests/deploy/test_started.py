"""The deployment of the Compose file really runs: as plain processes, with its commands, files, secrets and checks."""

import asyncio
import json
import signal
from collections.abc import AsyncGenerator

import httpx
import pytest

from tests.cluster.member import Member
from tests.deploy.processes import Deployment, running_deployment
from tiny_harness.client import Address, connect

PATIENCE_S = 60
pytestmark = pytest.mark.timeout(300)  # a dozen processes start in the first one


@pytest.fixture(scope="module")
async def deployment(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Deployment]:
    async with running_deployment(tmp_path_factory.mktemp("deployment")) as deployment:
        yield deployment


@pytest.fixture(scope="module")
async def address(deployment: Deployment) -> Address:
    said = await asyncio.to_thread(deployment.operate, "tokens", "create", "ann", "--json")
    return Address(deployment.url, token=json.loads(said)["token"])


async def ask(address: Address) -> str | None:
    async with asyncio.timeout(PATIENCE_S), connect(address) as client:
        return (await client.send("/contact")).reply


async def test_a_command_goes_from_the_proxy_to_the_hook_host_and_back(address: Address) -> None:
    """Over a gateway, Temporal, an engine, TLS to the hook host, PostgreSQL and Redis, sealed and signed."""
    assert await ask(address) == "This harness is run by your platform team."


async def test_the_proxy_shows_strangers_nothing_of_the_inside(deployment: Deployment) -> None:
    async with httpx.AsyncClient(base_url=deployment.url, timeout=PATIENCE_S) as http:
        for page in ("/readyz", "/_monitor", "/metrics", "/readyz/"):
            assert (await http.get(page)).status_code == 404
        assert (await http.get("/healthz")).json() == {"status": "ok", "streams": "bus"}
        assert (
            (await http.get("/.well-known/agent-card.json"))
            .json()["supportedInterfaces"][0]["url"]
            .startswith(deployment.url)
        )
        assert (await http.post("/a2a/v1/message:send", json={})).status_code in (401, 404)


async def test_one_gateway_after_the_other_is_replaced_and_nobody_notices(
    deployment: Deployment, address: Address
) -> None:
    for member in deployment.gateways:
        assert await member.stop() == 0
        assert await ask(address) == "This harness is run by your platform team."
        await member.start()


async def test_each_service_drains_when_it_is_told_to_stop(deployment: Deployment, address: Address) -> None:
    members: list[Member] = [deployment.engines[0], deployment.hooks]
    for member in members:
        member.signal(signal.SIGTERM)
    assert [await member.until_ended() for member in members] == [0, 0]
    for member in members:
        await member.start()
    assert await ask(address) == "This harness is run by your platform team."


@pytest.mark.usefixtures("address")
async def test_the_operators_other_commands_work_from_the_same_image(deployment: Deployment) -> None:
    assert "nothing was done" in await asyncio.to_thread(deployment.operate, "store", "migrate")
    assert "open tasks" in await asyncio.to_thread(deployment.operate, "tasks", "repair", "--all")
    assert "schedule" in await asyncio.to_thread(deployment.operate, "schedules", "delete")
    assert "ann" in await asyncio.to_thread(deployment.operate, "tokens", "list")
