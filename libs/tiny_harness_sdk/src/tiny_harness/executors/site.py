"""Puts the transports, their guard and the health check together (the composition of an executor server)."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route, request_response

from tiny_harness.errors import ConfigError
from tiny_harness.executors.guard import Guard
from tiny_harness.executors.jsonrpc import JsonRpc
from tiny_harness.executors.mcp import Mcp
from tiny_harness.executors.switchboard import Switchboard
from tiny_harness.hooks.signature import Verifier, secret_variable, secrets_for

if TYPE_CHECKING:
    from tiny_harness.executors.app import ExecutorApp

RPC_PATH: Final = "/rpc"
MCP_PATH: Final = "/mcp"
HEALTH_PATH: Final = "/healthz"


def build_site(app: "ExecutorApp", *, unsigned: bool) -> Starlette:
    """Build the ASGI app of an `ExecutorApp`; see `ExecutorApp.asgi`."""
    verifier = None if unsigned else _verifier(app)
    switchboard = Switchboard(app.name, app.executors, app.commands)
    rpc = Guard(request_response(JsonRpc(switchboard).respond), verifier)
    mcp = Mcp(switchboard)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncGenerator[None]:
        try:
            async with mcp.running():
                yield
        finally:
            await switchboard.close()

    routes = [
        Route("/", rpc),
        Route(RPC_PATH, rpc),
        Route(MCP_PATH, Guard(mcp, verifier)),
        Route(HEALTH_PATH, _healthz, methods=["GET"]),
    ]
    site = Starlette(routes=routes, lifespan=lifespan, exception_handlers={404: _nothing})
    site.router.redirect_slashes = False  # callers follow no redirects
    return site


def _verifier(app: "ExecutorApp") -> Verifier:
    """Read the secrets of the keys that an app knows, once: a key that it does not know opens nothing."""
    secrets = {key_id: secrets_for(key_id) for key_id in app.keys}
    if not any(secrets.values()):
        variables = " or ".join(f"${secret_variable(key_id)}" for key_id in secrets)
        raise ConfigError(
            f"no secret to check signatures with: put one into {variables}, the same that the harness has; "
            "on loopback, --unsigned goes without"
        )
    return Verifier(lambda key_id: secrets.get(key_id, ()))


async def _healthz(_: Request) -> JSONResponse:
    """Say that the process lives, and nothing else: nobody signed the question."""
    return JSONResponse({"status": "ok"})


async def _nothing(_: Request, __: Exception) -> JSONResponse:
    return JSONResponse({"error": {"code": 404, "status": "NOT_FOUND", "message": "there is nothing here"}}, 404)
