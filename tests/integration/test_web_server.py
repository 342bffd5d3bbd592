"""One app on a Unix socket and a TCP port: who came by which, and how both end."""

import asyncio
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvloop
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tiny_harness.errors import ConfigError
from tiny_harness.web_server import bind_tcp, serving

PATIENCE_S = 30
URL = "http://localhost"


class App:
    """An app that tells where a request came in, and holds some until it is let go."""

    def __init__(self) -> None:
        self.held = asyncio.Semaphore(0)
        self.let_go = asyncio.Event()
        self.starlette = Starlette(routes=[Route("/where", self.tell), Route("/hold", self.hold)])
        self.starlette.state.stop_streams = self.let_go.set

    async def tell(self, request: Request) -> Response:
        return JSONResponse({"server": request.scope["server"], "client": request.scope["client"]})

    async def hold(self, _request: Request) -> Response:
        self.held.release()
        await self.let_go.wait()
        return JSONResponse("done")


def by_socket(path: Path) -> httpx.AsyncClient:
    """A client of the Unix socket."""
    return httpx.AsyncClient(transport=httpx.AsyncHTTPTransport(uds=str(path)), base_url=URL, timeout=PATIENCE_S)


def by_tcp(tcp: socket.socket) -> httpx.AsyncClient:
    """A client of the TCP port."""
    return httpx.AsyncClient(base_url=f"http://127.0.0.1:{tcp.getsockname()[1]}", timeout=PATIENCE_S)


async def ask_both(path: Path) -> list[dict[str, Any]]:
    """What the app sees of a request by the socket, and of one by TCP."""
    tcp = bind_tcp("127.0.0.1", 0)
    async with asyncio.timeout(PATIENCE_S), serving(App().starlette, path, tcp), by_socket(path) as a, by_tcp(tcp) as b:
        return [(await client.get("/where")).json() for client in (a, b)]


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
async def test_only_the_unix_socket_has_no_port(
    tmp_path: Path, new_loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    """What lets a caller in without a token."""

    def run() -> list[dict[str, Any]]:
        with asyncio.Runner(loop_factory=new_loop) as runner:
            return runner.run(ask_both(tmp_path / "s"))

    by_path, by_port = await asyncio.to_thread(run)
    assert by_path["server"] == [str(tmp_path / "s"), None]
    assert by_port["server"][0] == "127.0.0.1"
    assert isinstance(by_port["server"][1], int)
    assert by_port["client"][0] == "127.0.0.1"


async def test_calls_in_flight_on_both_are_answered_before_it_ends(tmp_path: Path) -> None:
    app, path, tcp = App(), tmp_path / "s", bind_tcp("127.0.0.1", 0)
    async with asyncio.timeout(PATIENCE_S), by_socket(path) as a, by_tcp(tcp) as b:
        async with serving(app.starlette, path, tcp):
            calls = [asyncio.ensure_future(client.get("/hold")) for client in (a, b)]
            for _ in calls:
                await app.held.acquire()
        assert [call.result().json() for call in calls] == ["done", "done"]
        with pytest.raises(httpx.ConnectError):
            await b.get("/where")


async def test_the_socket_is_for_its_owner_only(tmp_path: Path) -> None:
    async with serving(App().starlette, tmp_path / "s", None):
        assert (tmp_path / "s").stat().st_mode & 0o777 == 0o600


async def test_a_socket_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    path = tmp_path / "taken"
    path.mkdir()
    with pytest.raises(ConfigError) as caught:
        async with asyncio.timeout(PATIENCE_S), serving(App().starlette, path, None):
            pass
    assert caught.value.file == str(path)


async def test_a_port_in_use_is_named(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(ConfigError) as caught:
            bind_tcp("127.0.0.1", taken.getsockname()[1])
    assert caught.value.key == "server.bind"
