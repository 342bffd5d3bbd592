"""A small MCP service with signed requests, as a stranger might write it with the official SDK."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Mount
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tests.integration.remote_hooks.contexts import secrets
from tiny_harness.background import in_background
from tiny_harness.errors import SignatureRefused
from tiny_harness.hooks.signature import SignedCall, Verifier


class Guard:
    """Lets only signed requests in; keeps what they said."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._verifier = Verifier(secrets)
        self.calls: list[tuple[SignedCall, bytes]] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope, receive)
        body = await request.body()
        query = scope["query_string"].decode()
        path = scope["raw_path"].decode() + (f"?{query}" if query else "")
        try:
            call = self._verifier.check(request.method, path, dict(request.headers), body)
        except SignatureRefused as refusal:
            error = {"code": 401, "status": "UNAUTHENTICATED", "message": refusal.reason}
            await JSONResponse({"error": error}, 401)(scope, receive, send)
            return
        self.calls.append((call, body))

        parts: list[Message] = [{"type": "http.request", "body": body}]

        async def replay() -> Message:
            return parts.pop() if parts else await receive()

        await self._app(scope, replay, send)


def build(*, stateless: bool) -> tuple[Starlette, Guard]:
    """Build a service with a hook that answers by what it is told, and a body."""
    server = MCPServer("stranger", version="1.0", log_level="CRITICAL")

    @server.tool("hooks.request.received.pre")
    async def received(context: dict[str, Any]) -> dict[str, Any]:
        match context["text"]:
            case "abort":
                return {"abort": {"reason": "not on a Friday"}}
            case "raise":
                raise ToolError("broken")
            case "hang":
                await asyncio.Event().wait()
            case "nonsense":
                return {"patch": [1]}
            case "nothing":
                return {"patch": None}
            case "large":
                return {"patch": {"text": "x" * 10_000_000}}
        return {"patch": {"text": "changed"}}

    @server.tool("hooks.command.invoked.in")
    async def deploy(context: dict[str, Any]) -> dict[str, Any]:
        return {"patch": {"result": {"reply": f"deployed {context['arguments']}"}}}

    app = server.streamable_http_app(streamable_http_path="/hooks", stateless_http=stateless, json_response=stateless)
    guard = Guard(app)

    @contextlib.asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncGenerator[None]:
        async with server.session_manager.run():
            yield

    return Starlette(routes=[Mount("/", guard)], lifespan=lifespan), guard


class Server(uvicorn.Server):
    """Leaves signals to the test run."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield

    def ask_to_stop(self) -> None:
        self.should_exit = True


@asynccontextmanager
async def serving(app: ASGIApp, path: str = "/hooks", port: int = 0) -> AsyncGenerator[str]:
    """Serve an app on loopback while the block runs; its URL."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind(("127.0.0.1", port))
    server = Server(uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=1))
    with contextlib.closing(sock):
        sock.listen()  # connections wait from here on, until the server takes them
        async with in_background(server.serve([sock]), server.ask_to_stop):
            yield f"http://127.0.0.1:{sock.getsockname()[1]}{path}"
