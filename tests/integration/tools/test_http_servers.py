"""Tools of servers over HTTP: the SDK's own, restarted and killed, and ones that cheat."""

import asyncio
import json
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from mcp_types import HEADER_MISMATCH
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from tests.integration.tools.conftest import PATIENCE_S, SERVERS, OpenHub, lines, until
from tiny_harness.errors import SchemaDrift, ToolFailed
from tiny_harness.plugins.servers import HttpServer
from tiny_harness_engine.tools import Limits, Progress, ToolHub, ToolResult

TOKEN = {"TINY_HARNESS_TOOL_SECRET_SHOP_MAIN": "for the shop"}
OLD = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "x", "version": "1"}}


@dataclass
class Process:
    """A server's process."""

    process: asyncio.subprocess.Process
    port: int
    words: tuple[str, ...]
    """What it was started with."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    async def kill(self) -> None:
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()


Serve = Callable[..., Awaitable[Process]]


@pytest.fixture
async def serve(tmp_path: Path) -> AsyncGenerator[Serve]:
    """Start servers, and kill them at the end."""
    async with AsyncExitStack() as stack:

        async def start(*words: str) -> Process:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, str(SERVERS / "orders.py"), str(tmp_path), "http", *words),
                stdout=asyncio.subprocess.PIPE,
            )
            assert process.stdout is not None
            async with asyncio.timeout(PATIENCE_S):
                running = Process(process, int(await process.stdout.readline()), words)
            stack.push_async_callback(running.kill)
            return running

        yield start


def http(url: str, **options: Any) -> HttpServer:
    return HttpServer("main", url, plugin="shop", **options)


async def call(hub: ToolHub, name: str, **arguments: object) -> ToolResult:
    async with asyncio.timeout(PATIENCE_S):
        return await hub.call(f"shop/main.{name}", json.dumps(arguments))


async def failed(hub: ToolHub, name: str, **arguments: object) -> ToolFailed:
    with pytest.raises(ToolFailed) as caught:
        await call(hub, name, **arguments)
    return caught.value


def state(hub: ToolHub) -> str:
    return hub.health()[0]["state"]


@pytest.fixture(params=["modern", "legacy"])
async def site(request: pytest.FixtureRequest, serve: Serve) -> Process:
    return await serve(request.param)


async def test_calls_results_and_progress_cross(site: Process, open_hub: OpenHub) -> None:
    hub = await open_hub(http(site.url))
    assert (await call(hub, "add", a=1, b=2)).data == {"total": 3}
    assert "the result has 5000000 bytes" in (await call(hub, "big", size=5_000_000)).text
    seen: list[Progress] = []
    await hub.call("shop/main.slow", '{"steps": 3}', on_progress=seen.append)
    await until(lambda: Progress(3, 3, "step 3") in seen)


async def test_a_hundred_calls_at_once_cross(site: Process, open_hub: OpenHub) -> None:
    hub = await open_hub(http(site.url))
    results = await asyncio.gather(*(call(hub, "add", a=number, b=0) for number in range(100)))
    assert [result.data for result in results] == [{"total": number} for number in range(100)]


async def test_a_call_is_cancelled_at_its_deadline(site: Process, open_hub: OpenHub, tmp_path: Path) -> None:
    hub = await open_hub(http(site.url), limits=Limits(call_s=1))
    assert (await failed(hub, "hang", word="x")).may_have_run
    await until(lambda: "cancelled x" in lines(tmp_path / "hangs"))
    assert (await call(hub, "add", a=1, b=1)).data == {"total": 2}


async def test_a_changed_listing_is_noticed(site: Process, open_hub: OpenHub) -> None:
    hub = await open_hub(http(site.url))
    old = next(one for one in hub.tools() if one.name.endswith(".add")).schema_hash
    await call(hub, "change")
    await until(lambda: next(one for one in hub.tools() if one.name.endswith(".add")).schema_hash != old)
    with pytest.raises(SchemaDrift):
        await hub.call("shop/main.add", '{"a": 1, "b": 1}', schema_hash=old)


async def test_a_listing_that_changes_in_silence_is_found_by_looking(open_hub: OpenHub) -> None:
    cheat = Cheat()
    async with cheat.serving() as url:
        hub = await open_hub(http(url), limits=Limits(probe_s=0.1))
        assert len(hub.tools()) == 1
        cheat.tools = []
        await until(lambda: hub.tools() == ())


async def test_a_killed_server_fails_its_calls_and_is_found_again(
    site: Process, serve: Serve, open_hub: OpenHub, tmp_path: Path
) -> None:
    hub = await open_hub(http(site.url))
    running = asyncio.create_task(failed(hub, "hang", word="z"))
    await until(lambda: "began z" in lines(tmp_path / "hangs"))
    await site.kill()
    failure = await running
    assert failure.may_have_run
    assert "the connection broke" in failure.reason  # and not: no answer in time
    assert not (await failed(hub, "refund", order="1")).may_have_run
    assert lines(tmp_path / "refunds") == []
    await until(lambda: state(hub) == "down" and "it cannot be connected to" in hub.health()[0]["reason"])
    await serve(str(site.port), *site.words)
    await until(lambda: state(hub) == "up")
    assert (await call(hub, "refund", order="1")).text == "refunded 1"


async def test_credentials_come_from_the_environment(site: Process, open_hub: OpenHub) -> None:
    server = http(site.url, headers={"X-Tenant": "north ${HOME}", "Accept": "nothing", "Authorization": "declared"})
    environ = {**TOKEN, "TINY_HARNESS_TOOL_SECRET_SHOP_MAIN__X_API_KEY": "k1"}
    hub = await open_hub(server, environ=environ)
    seen = json.loads((await call(hub, "headers")).text)
    assert seen["authorization"] == "Bearer for the shop"
    assert seen["x-api-key"] == "k1"
    assert seen["x-tenant"] == "north ${HOME}"
    assert "application/json" in seen["accept"]


@pytest.mark.parametrize("environ", [{"TINY_HARNESS_TOOL_SECRET_SHOP_MAIN": " "}, {**TOKEN, "X": "", "two": "yes"}])
async def test_a_server_whose_credentials_are_unclear_is_not_contacted(
    open_hub: OpenHub, environ: dict[str, str]
) -> None:
    cheat = Cheat()
    async with cheat.serving() as url:
        others = [HttpServer("MAIN", url, plugin="shop")] if "two" in environ else []
        hub = await open_hub(http(url), *others, environ=environ)
        assert state(hub) == "down"
        assert "TINY_HARNESS_TOOL_SECRET_SHOP_MAIN" in hub.health()[0]["reason"]
        assert cheat.seen == []


@dataclass
class Cheat:
    """A server of MCP that does what it is told to at a call."""

    act: Callable[[Request, dict[str, Any]], Response] | None = None
    tools: list[dict[str, Any]] = field(default_factory=lambda: [{"name": "work", "inputSchema": {"type": "object"}}])
    seen: list[tuple[str, str | None]] = field(default_factory=list[tuple[str, str | None]])
    """Method and Authorization of every request."""

    async def answer(self, request: Request) -> Response:
        document = await request.json()
        self.seen.append((document["method"], request.headers.get("authorization")))
        match document["method"]:
            case "initialize":
                result: dict[str, Any] = OLD
            case "tools/list":
                result = {"tools": self.tools}
            case "tools/call" if self.act is not None:
                return self.act(request, document)
            case "tools/call":
                result = {"content": [{"type": "text", "text": "worked"}]}
            case method if "id" not in document:
                return Response(status_code=202, headers={"X-Method": method})
            case _:
                return JSONResponse({"jsonrpc": "2.0", "id": document["id"], "error": {"code": -32601, "message": "?"}})
        return JSONResponse({"jsonrpc": "2.0", "id": document["id"], "result": result})

    def serving(self) -> "Serving":
        return Serving(Starlette(routes=[Route("/mcp", self.answer, methods=["POST"])]))


class Serving:
    """An application on a loopback port, while the block runs."""

    def __init__(self, app: Starlette) -> None:
        self._server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", timeout_graceful_shutdown=1))

    async def __aenter__(self) -> str:
        self._task = asyncio.create_task(self._server.serve())
        await until(lambda: self._server.started)
        return f"http://127.0.0.1:{self._server.servers[0].sockets[0].getsockname()[1]}/mcp"

    async def __aexit__(self, *_: object) -> None:
        self._server.should_exit = True
        await self._task


def status(code: int) -> Callable[[Request, dict[str, Any]], Response]:
    return lambda _request, _document: Response("busy\x1b[0m", status_code=code)


def typed(body: bytes, kind: str = "application/json", **headers: str) -> Callable[[Request, dict[str, Any]], Response]:
    return lambda _request, _document: Response(body, media_type=kind, headers=headers)


def cut(_request: Request, _document: dict[str, Any]) -> Response:
    async def half() -> AsyncGenerator[bytes]:
        yield b'{"jsonrpc": "2.0", '
        raise ConnectionResetError

    return StreamingResponse(half(), media_type="application/json", headers={"Content-Length": "1000"})


def elsewhere(request: Request, _document: dict[str, Any]) -> Response:
    return RedirectResponse(str(request.url.replace(path="/mcp")), status_code=307)


def json_error(code: int) -> Callable[[Request, dict[str, Any]], Response]:
    error = {"code": code, "message": "no"}
    return lambda _request, document: JSONResponse({"jsonrpc": "2.0", "id": document["id"], "error": error}, 400)


GZIP = {"Content-Encoding": "gzip"}
CHEATS = {
    # what it does, whether the call may have run, whether it may be better later, the reason
    "redirects": (elsewhere, False, False, "redirects are never followed"),
    "refuses": (status(403), False, False, "it answered HTTP 403: busy"),
    "is busy": (status(429), False, True, "it answered HTTP 429: busy"),
    "forgets the session": (status(404), False, True, "it answered HTTP 404"),
    "knows another schema": (json_error(HEADER_MISMATCH), False, True, "its schema has changed"),
    "breaks": (status(500), True, True, "it answered HTTP 500"),
    "cuts": (cut, True, True, "the connection broke"),
    "compresses": (typed(b"\x1f\x8b", **GZIP), True, False, "compressed"),
    "floods": (typed(b" " * 17_000_000), True, False, "more than 16777216 bytes"),
    "ends a stream": (typed(b": nothing\n\n", "text/event-stream"), True, True, "ended without a response"),
}


@pytest.mark.parametrize("name", CHEATS)
async def test_a_server_that_cheats_is_told_from_one_that_answers(open_hub: OpenHub, name: str) -> None:
    act, may_have_run, transient, reason = CHEATS[name]
    cheat = Cheat(act)
    async with cheat.serving() as url:
        hub = await open_hub(http(url), environ=TOKEN)
        failure = await failed(hub, "work")
        assert (failure.may_have_run, failure.transient) == (may_have_run, transient)
        assert reason in failure.reason
        assert "\x1b" not in failure.reason
        cheat.act = None
        await until(lambda: state(hub) == "up")
        assert (await call(hub, "work")).text == "worked"
        assert [method for method, _ in cheat.seen].count("tools/call") == 2
        assert {token for _, token in cheat.seen} == {"Bearer for the shop"}


@pytest.mark.parametrize("act", [typed(b"{"), typed(b"[]"), typed(b"<html>", "text/html"), status(202)])
async def test_an_answer_that_is_no_json_rpc_leaves_open_what_happened(open_hub: OpenHub, act: Any) -> None:
    cheat = Cheat(act)
    async with cheat.serving() as url:
        hub = await open_hub(http(url))
        failure = await failed(hub, "work")
        assert (failure.may_have_run, failure.transient) == (True, False)
        cheat.act = None
        assert (await call(hub, "work")).text == "worked"
        assert hub.health()[0]["restarts"] == 0


async def test_a_refusal_in_mcps_own_words_is_an_answer(open_hub: OpenHub) -> None:
    async with Cheat(json_error(-32602)).serving() as url:
        result = await call(await open_hub(http(url)), "work")
        assert (result.text, result.is_error) == ("[the server refused the call: no (code -32602)]", True)


async def test_a_server_that_is_not_there_is_down_with_the_reason(open_hub: OpenHub) -> None:
    hub = await open_hub(http("http://127.0.0.1:9/mcp"))
    assert state(hub) == "down"
    assert "it cannot be connected to" in hub.health()[0]["reason"]
