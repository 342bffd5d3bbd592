"""Composes the gateway: one Starlette app over a store, a bus and the engine."""

import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

from a2a.server.routes import create_jsonrpc_routes, create_rest_routes
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from temporalio.client import Client

from tiny_harness.bus import Bus
from tiny_harness.errors import HarnessError
from tiny_harness.settings import Settings
from tiny_harness.store import Store
from tiny_harness_gateway import requests
from tiny_harness_gateway.answers import Answers
from tiny_harness_gateway.auth import Authenticator
from tiny_harness_gateway.bindings import REST, JsonRpc, refusal
from tiny_harness_gateway.card import CARD_PATH, REST_PATH, RPC_PATH, CardEndpoint, build_card
from tiny_harness_gateway.conversations import Conversations
from tiny_harness_gateway.engine_client import EngineClient, TemporalEngineClient
from tiny_harness_gateway.errors import plain_response
from tiny_harness_gateway.guard import OriginGuard
from tiny_harness_gateway.handler import CallContextBuilder, GatewayHandler
from tiny_harness_gateway.health import Health
from tiny_harness_gateway.limits import BodyLimit, RateLimit
from tiny_harness_gateway.streams import Streams
from tiny_harness_gateway.subscriptions import Subscriptions

Endpoint = Callable[[Request], Awaitable[Response]]

STREAMING_METHODS: Final = frozenset({"SendStreamingMessage", "SubscribeToTask"})


def create_app(
    settings: Settings,
    *,
    store: Store,
    bus: Bus,
    temporal: Client | None = None,
    token: str | None = None,
    engine: EngineClient | None = None,
) -> Starlette:
    """Build the gateway. `app.state.stop_streams()` ends its streams, so that a server can stop at once.

    Args:
        settings: What to serve and to whom.
        store: Where tasks are read.
        bus: Where events come from.
        temporal: Leads to the engine.
        token: What clients of mode `local` show on TCP.
        engine: Stands in for Temporal in tests.
    """
    if engine is None:
        if temporal is None:
            raise ValueError("a gateway needs Temporal or an engine client")
        engine = TemporalEngineClient(temporal, settings.temporal.task_queue)
    subscriptions = Subscriptions(store, bus)
    conversations = Conversations(settings, store, engine, subscriptions)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncGenerator[None]:
        async with subscriptions.running():
            yield

    app = Starlette(
        routes=_routes(settings, conversations, Health(store, temporal)),
        middleware=_middleware(settings, token),
        exception_handlers={HTTPException: _http_error},
        lifespan=lifespan,
    )
    app.state.stop_streams = subscriptions.close_feeds
    return app


def _middleware(settings: Settings, token: str | None) -> list[Middleware]:
    """What every request passes, in order; the Host and Origin check is first."""
    server = settings.server
    chain = [Middleware(OriginGuard, base_url=server.url, cors_origins=server.cors_origins)]
    if server.cors_origins:
        headers = ["content-type", "authorization", "a2a-version", "a2a-extensions", "last-event-id"]
        origins = list(server.cors_origins)
        chain.append(Middleware(CORSMiddleware, allow_origins=origins, allow_methods=["*"], allow_headers=headers))
    return [
        *chain,
        Middleware(BodyLimit, max_bytes=server.max_request_bytes),
        Middleware(Authenticator, settings=settings, token=token),
        Middleware(RateLimit, per_minute=server.rate_limit_per_minute),
        Middleware(Answers),
    ]


def _routes(settings: Settings, conversations: Conversations, health: Health) -> list[BaseRoute]:
    handler = GatewayHandler(conversations)
    streams = Streams(conversations, settings.server.max_streams)
    context = CallContextBuilder()
    [sdk_rpc] = create_jsonrpc_routes(handler, RPC_PATH, context_builder=context)
    rpc = _rpc_endpoint(streams, sdk_rpc.endpoint)
    rest = [
        Route(f"{REST_PATH}/message:stream", streams.rest_send, methods=["POST"]),
        Route(f"{REST_PATH}/tasks/{{id}}:subscribe", streams.rest_subscribe, methods=["GET", "POST"]),
    ]
    for route in create_rest_routes(handler, context_builder=context, path_prefix=REST_PATH):
        # The SDK's tenant routes end in a mount that swallows whatever comes behind; nothing here has tenants.
        if isinstance(route, Route):
            methods = [method for method in route.methods or () if method != "HEAD"]
            rest.append(Route(route.path, _checked_rest(route.endpoint), methods=methods))
    return [
        Route(CARD_PATH, CardEndpoint(build_card(settings), time.time()).serve),
        Route("/healthz", health.alive),
        Route("/readyz", health.ready),
        Route(RPC_PATH, rpc, methods=["POST"]),
        Route(f"{RPC_PATH}/", rpc, methods=["POST"]),
        *rest,
    ]


def _rpc_endpoint(streams: Streams, sdk: Endpoint) -> Endpoint:
    """Serve streaming methods ourselves and hand all others to the SDK."""

    async def endpoint(request: Request) -> Response:
        body = await _json_object(request)
        if body is None or body.get("jsonrpc") != "2.0" or not isinstance(body.get("id"), str | int | None):
            return await sdk(request)
        if body.get("method") in STREAMING_METHODS:
            return await streams.rpc(request, body)
        try:
            requests.check_version(request)
            if body.get("method") == "ListTasks" and isinstance(body.get("params"), dict):
                requests.check_status_filter(body["params"].get("status"))
        except Exception as error:  # noqa: BLE001 - the edge: told as an answer of the binding, logged if unforeseen
            return refusal(JsonRpc(body.get("id")), error)
        return await sdk(_with_version(request))

    return endpoint


def _checked_rest(sdk: Endpoint) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        try:
            requests.check_version(request)
            requests.check_status_filter(request.query_params.get("status"))
        except Exception as error:  # noqa: BLE001 - the edge: told as an answer of the binding, logged if unforeseen
            return refusal(REST, error)
        return await sdk(_with_version(request))

    return endpoint


def _with_version(request: Request) -> Request:
    """Tell the SDK in a header what the query may have said: it reads only that."""
    if "a2a-version" in request.headers:
        return request
    headers = [*request.scope["headers"], (b"a2a-version", requests.VERSION.encode())]
    return Request({**request.scope, "headers": headers}, request.receive)


async def _json_object(request: Request) -> dict[str, Any] | None:
    try:
        body = await request.json()
    except ValueError:
        return None
    return body if isinstance(body, dict) else None


async def _http_error(_request: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        return plain_response(500, "internal", str(HarnessError()))
    headers = dict(error.headers) if error.headers else None
    return plain_response(
        error.status_code, "not_found" if error.status_code == 404 else "refused", error.detail, headers
    )
