"""The MCP contract over a real socket, with the official SDK's client."""

import itertools
import time
from collections.abc import AsyncGenerator, Generator

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.integration.executors.calls import SECRET
from tests.integration.executors.conftest import Site
from tests.unit.hooks.samples import command_context
from tiny_harness.hooks.signature import sign

IN, PRE = "hooks.command.invoked.in", "hooks.command.invoked.pre"


class Signing(httpx2.Auth):
    """Signs each HTTP request."""

    requires_request_body = True

    def __init__(self) -> None:
        self._numbers = itertools.count(1)

    def auth_flow(self, request: httpx2.Request) -> Generator[httpx2.Request, httpx2.Response]:
        headers = sign(
            SECRET,
            method=request.method,
            path=request.url.raw_path.decode(),
            key_id="deploys",
            timestamp=int(time.time()),
            delivery_id=f"http-{next(self._numbers)}",
            attempt=1,
            body=request.content,
        )
        request.headers.update(headers)
        yield request


@pytest.fixture
async def http(site: Site) -> AsyncGenerator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(auth=Signing(), timeout=30, trust_env=False) as client:
        yield client


def connected(http: httpx2.AsyncClient, site: Site) -> Client:
    return Client(streamable_http_client(site.mcp_url, http_client=http), read_timeout_seconds=30)


async def test_each_hook_point_is_a_tool(site: Site, http: httpx2.AsyncClient) -> None:
    async with connected(http, site) as client:
        tools = (await client.list_tools()).tools
    assert [tool.name for tool in tools] == [PRE, IN]
    assert tools[0].input_schema["required"] == ["context"]


async def test_a_tool_answers_a_patch_or_an_abort(site: Site, http: httpx2.AsyncClient) -> None:
    async with connected(http, site) as client:
        done = await client.call_tool(IN, {"context": command_context()})
        assert not done.is_error
        assert done.structured_content["patch"]["result"]["reply"] == "Deployed to staging."
        nothing = await client.call_tool(PRE, {"context": command_context(phase="pre")})
        assert nothing.structured_content == {"patch": None}
        refused = await client.call_tool(PRE, {"context": command_context(phase="pre", arguments="forbidden")})
        assert not refused.is_error
        assert refused.structured_content == {"abort": {"reason": "that word is forbidden"}}


async def test_a_failing_executor_is_an_error_in_fixed_words(site: Site, http: httpx2.AsyncClient) -> None:
    async with connected(http, site) as client:
        failed = await client.call_tool(IN, {"context": command_context("boom")})
    assert failed.is_error
    assert failed.structured_content is None
    assert failed.content[0].model_dump()["text"] == "the executor failed, correlation id corr-1"


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("hooks.nope", {"context": command_context()}),
        ("command.invoked.in", {"context": command_context()}),
        (IN, {}),
        (IN, {"context": {}}),
        (IN, {"context": command_context("unknown")}),
        (IN, {"context": command_context(), "more": 1}),
    ],
)
async def test_a_call_that_makes_no_sense_is_an_error(
    site: Site, http: httpx2.AsyncClient, tool: str, arguments: dict[str, object]
) -> None:
    async with connected(http, site) as client:
        assert (await client.call_tool(tool, arguments)).is_error
    assert site.deployed == []


async def test_a_retry_of_a_delivery_runs_nothing(site: Site, http: httpx2.AsyncClient) -> None:
    async with connected(http, site) as client:
        for attempt in (1, 2):
            context = command_context(delivery_id="d-1", attempt=attempt)
            answer = await client.call_tool(IN, {"context": context})
            assert answer.structured_content["patch"]["result"]["reply"] == "Deployed to staging."
    assert site.deployed == ["d-1"]


async def test_an_unsigned_request_gets_nowhere(site: Site) -> None:
    async with httpx2.AsyncClient(timeout=30, trust_env=False) as client:
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        response = await client.post(site.mcp_url, json=body, headers={"Accept": "application/json"})
    assert response.status_code == 401
    assert response.json()["error"]["status"] == "UNAUTHENTICATED"
