"""Composes the gateway: one Starlette app over a store, a bus and the engine."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

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
from tiny_harness.push import push_ring
from tiny_harness.readiness import Readiness
from tiny_harness.settings import Settings
from tiny_harness.store import Store
from tiny_harness_gateway.acknowledging import Acknowledging
from tiny_harness_gateway.answers import Answers
from tiny_harness_gateway.auth import Authenticator
from tiny_harness_gateway.card import CARD_PATH, REST_PATH, RPC_PATH, Cards
from tiny_harness_gateway.conversations import Conversations
from tiny_harness_gateway.endpoints import rest_endpoint, rpc_endpoint
from tiny_harness_gateway.engine_client import EngineClient, TemporalEngineClient
from tiny_harness_gateway.errors import plain_response
from tiny_harness_gateway.guard import OriginGuard
from tiny_harness_gateway.handler import CallContextBuilder, GatewayHandler
from tiny_harness_gateway.health import Health
from tiny_harness_gateway.identity import Credentials, open_credentials
from tiny_harness_gateway.limits import BodyLimit, ContentType, RateLimit, StreamLimit
from tiny_harness_gateway.monitor import Monitor
from tiny_harness_gateway.push_configs import PushConfigs
from tiny_harness_gateway.rate import Rate, open_rate
from tiny_harness_gateway.streams import Streams
from tiny_harness_gateway.subscriptions import DEAF_INTERVAL_S, Subscriptions
from tiny_harness_gateway.webui import Pages
from tiny_harness_gateway.worker_tools import WorkerTools
from tiny_harness_gateway.workers_route import WORKERS_PATH, WorkersRoute

CORS_HEADERS: Final = [
    "content-type",
    "authorization",
    "a2a-version",
    "a2a-extensions",
    "last-event-id",
    "x-participant-id",
    "x-participant-kind",
]


def create_app(
    settings: Settings,
    *,
    store: Store,
    bus: Bus,
    temporal: Client | None = None,
    token: str | None = None,
    engine: EngineClient | None = None,
    hears_engine: bool = True,
    drain_s: float = 0.0,
) -> Starlette:
    """Build the gateway. `app.state.stop_streams()` ends its streams, so that a server can stop at once.

    Args:
        settings: What to serve and to whom.
        store: Where tasks are read.
        bus: Where events come from.
        temporal: Leads to the engine.
        token: What clients of mode `local` show on TCP.
        engine: Stands in for Temporal in tests.
        hears_engine: Whether the engine publishes on this bus; else the store is asked twice a second.
        drain_s: Seconds that blocking calls may wait for their turn once streams are told to end; then they get the
            task as it stands.
    """
    if engine is None:
        if temporal is None:
            raise ValueError("a gateway needs Temporal or an engine client")
        engine = TemporalEngineClient(temporal, settings.temporal.task_queue)
    subscriptions = Subscriptions(store, bus, None if hears_engine else DEAF_INTERVAL_S, drain_s=drain_s)
    conversations = Conversations(settings, store, engine, subscriptions)

    pushes = PushConfigs(settings, store, conversations, push_ring())
    credentials = open_credentials(settings, store, token)
    rate = open_rate(settings)
    workers = WorkersRoute(WorkerTools(conversations))
    health = Health(Readiness(store, temporal, bus), bus, hears_engine=hears_engine)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncGenerator[None]:
        async with credentials.running(), rate.running(), subscriptions.running(), workers.running():
            yield

    app = Starlette(
        routes=_routes(settings, conversations, pushes, store, health, workers),
        middleware=_middleware(settings, credentials, rate),
        exception_handlers={HTTPException: _http_error, Exception: _http_error},
        lifespan=lifespan,
    )
    app.state.stop_streams = subscriptions.close_feeds
    return app


def _middleware(settings: Settings, credentials: Credentials, rate: Rate) -> list[Middleware]:
    """What every request passes, in order; the Host and Origin check is first."""
    server = settings.server
    chain = [Middleware(OriginGuard, base_url=server.url, cors_origins=server.cors_origins)]
    if server.cors_origins:
        origins = list(server.cors_origins)
        chain.append(Middleware(CORSMiddleware, allow_origins=origins, allow_methods=["*"], allow_headers=CORS_HEADERS))
    return [
        *chain,
        Middleware(BodyLimit, max_bytes=server.max_request_bytes),
        Middleware(Authenticator, settings=settings, credentials=credentials),
        Middleware(RateLimit, rate=rate),
        Middleware(ContentType),
        Middleware(Answers),
    ]


def _routes(
    settings: Settings,
    conversations: Conversations,
    pushes: PushConfigs,
    store: Store,
    health: Health,
    workers: WorkersRoute,
) -> list[BaseRoute]:
    cards = Cards(settings, store, has_push=pushes.is_there)
    handler = GatewayHandler(conversations, pushes, cards)
    streams = Streams(conversations, pushes, StreamLimit(settings.server.max_streams))
    acknowledging = Acknowledging(conversations)
    context = CallContextBuilder()
    [sdk_rpc] = create_jsonrpc_routes(handler, RPC_PATH, context_builder=context)
    routes = [
        Route(CARD_PATH, cards.serve),
        Route("/healthz", health.alive),
        Route("/readyz", health.ready),
        Route("/_monitor", Monitor(store).show),
        Route(RPC_PATH, rpc_endpoint(streams, acknowledging, sdk_rpc.endpoint), methods=["POST"]),
        Route(f"{REST_PATH}/tasks/{{id}}:ack", acknowledging.rest, methods=["POST"]),
        Route(WORKERS_PATH, workers, methods=["GET", "POST", "DELETE"]),
        Route(f"{REST_PATH}/message:stream", streams.rest_send, methods=["POST"]),
        Route(f"{REST_PATH}/tasks/{{id}}:subscribe", streams.rest_subscribe, methods=["GET", "POST"]),
    ]
    for route in create_rest_routes(handler, context_builder=context, path_prefix=REST_PATH):
        # The SDK's tenant routes end in a mount that swallows whatever comes behind; nothing here has tenants.
        if isinstance(route, Route):
            methods = [method for method in route.methods or () if method != "HEAD"]
            endpoint = rest_endpoint(route.path.removeprefix(REST_PATH), route.endpoint)
            routes.append(Route(route.path, endpoint, methods=methods))
    # Each path with and without a trailing slash: clients do not follow the redirect that stands there otherwise.
    slashed = [Route(f"{route.path}/", route.endpoint, methods=list(route.methods or ())) for route in routes]
    return [*Pages().routes, *routes, *slashed]


async def _http_error(_request: Request, error: Exception) -> Response:
    """Tell what happened outside of A2A's operations: an unknown path, a wrong method, a bug."""
    if not isinstance(error, HTTPException):
        return plain_response(500, "internal", str(HarnessError()))
    headers = dict(error.headers) if error.headers else None
    code = "not_found" if error.status_code == 404 else "refused"
    return plain_response(error.status_code, code, error.detail, headers)
