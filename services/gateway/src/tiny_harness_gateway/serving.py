"""The gateway as a service of its own: any number of them serve one deployment, and none has a home."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

from tiny_harness.bus import LocalBus, open_bus
from tiny_harness.errors import ConfigError
from tiny_harness.settings import Settings
from tiny_harness.store import open_store
from tiny_harness.temporal import connect_temporal
from tiny_harness.web_server import bind_tcp, serving
from tiny_harness_gateway.app import create_app

DRAIN_S: Final = 20.0
"""How long calls that wait for a turn may go on when the gateway is told to stop; shorter than the server's patience
with all calls (`web_server.DRAIN_TIMEOUT_S`)."""

log = logging.getLogger(__name__)


async def serve(settings: Settings) -> None:
    """Serve until cancelled; then drain."""
    async with running_gateway(settings) as url:
        print(f"serving {url}", flush=True)
        await asyncio.Event().wait()


@asynccontextmanager
async def running_gateway(settings: Settings) -> AsyncGenerator[str]:
    """Serve A2A on `[server] bind` while the block runs; gives the address for clients.

    Raises:
        ConfigError: The settings are those of a harness on one machine, or something in them cannot be had.
        Unavailable: Temporal or the store does not answer.
    """
    if settings.auth.mode == "local":
        reason = 'is "local", which needs a home: a service of its own takes "tokens" or "jwt", on loopback also "none"'
        raise ConfigError(reason, key="auth.mode")
    async with AsyncExitStack() as stack:
        tcp = stack.enter_context(bind_tcp(settings.server.host, settings.server.port))
        store = await stack.enter_async_context(open_store(settings))
        bus = await stack.enter_async_context(open_bus(settings))
        temporal = await connect_temporal(settings)
        hears_engine = not isinstance(bus, LocalBus)
        if not hears_engine:
            log.warning("[redis] url is not set: streams ask the store twice a second")
        app = create_app(settings, store=store, bus=bus, temporal=temporal, hears_engine=hears_engine, drain_s=DRAIN_S)
        await stack.enter_async_context(serving(app, None, tcp))
        yield settings.server.url
