"""Connects to the Temporal that the settings name."""

import asyncio
import logging
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from temporalio.client import Client
from temporalio.converter import DataConverter

from tiny_harness.errors import ConfigError, Unavailable
from tiny_harness.seal import ring_of
from tiny_harness.settings import Settings, TemporalSettings
from tiny_harness.temporal.embedded import EmbeddedServer, open_embedded
from tiny_harness.temporal.sealing import data_converter

START_TIMEOUT_S: Final = 30.0
RETRY_INTERVAL_S: Final = 0.05
REMOTE_TIMEOUT_S: Final = 10.0
START_PATIENCE_S: Final = 15.0
"""How long a Temporal elsewhere may take to be there: whoever starts everything at once starts it, too."""
REMOTE_RETRY_INTERVAL_S: Final = 0.5

log = logging.getLogger(__name__)


@asynccontextmanager
async def open_temporal(settings: Settings, run_dir: Path) -> AsyncGenerator["PendingClient"]:
    """Start or name the Temporal server; `await client.ready()` connects to it.

    Starting comes before connecting, so that slow imports can run while an embedded server boots.

    Raises:
        ConfigError, AlreadyRunning: See `open_embedded`.
    """
    temporal = settings.temporal
    converter = data_converter(ring_of(settings))
    if temporal.mode == "remote":
        yield PendingClient(temporal, None, converter)
        return
    async with open_embedded(temporal.embedded, settings.temporal_database, run_dir) as server:
        yield PendingClient(temporal, server, converter)


async def connect_temporal(settings: Settings, patience_s: float = START_PATIENCE_S) -> Client:
    """Connect to the server at `[temporal] address`, which may take a while to be there.

    Raises:
        ConfigError: `[temporal]` does not name one.
        Unavailable: Nobody answers.
    """
    temporal = settings.temporal
    if temporal.mode == "embedded":
        reason = 'is "embedded": a service of its own needs "remote", and the address of a Temporal server'
        raise ConfigError(reason, key="temporal.mode")
    pending = PendingClient(temporal, None, data_converter(ring_of(settings)))
    deadline = asyncio.get_running_loop().time() + patience_s
    while True:
        try:
            return await pending.ready()
        except ConfigError as error:
            if asyncio.get_running_loop().time() > deadline:
                raise Unavailable(str(error)) from error
            log.info("Temporal is not there yet: %s", error)
        await asyncio.sleep(REMOTE_RETRY_INTERVAL_S)


class PendingClient:
    """A client that is not connected yet."""

    def __init__(self, settings: TemporalSettings, server: EmbeddedServer | None, converter: DataConverter) -> None:
        self._settings = settings
        self._server = server
        self._converter = converter

    async def ready(self) -> Client:
        """Connect, waiting for an embedded server to boot.

        Raises:
            ConfigError: The server does not answer.
        """
        if self._server is None:
            return await self._connect_remote()
        try:
            async with asyncio.timeout(START_TIMEOUT_S):
                return await self._connect_embedded(self._server)
        except TimeoutError:
            raise ConfigError(f"the embedded Temporal server did not start in {START_TIMEOUT_S:.0f} s") from None

    async def _connect_embedded(self, server: EmbeddedServer) -> Client:
        while True:
            server.check()
            try:
                client = await Client.connect(server.address, data_converter=self._converter)
            except RuntimeError:  # what temporalio raises while nobody listens
                await asyncio.sleep(RETRY_INTERVAL_S)
            else:
                server.answers()
                return client

    async def _connect_remote(self) -> Client:
        settings = self._settings
        try:
            async with asyncio.timeout(REMOTE_TIMEOUT_S):
                return await Client.connect(
                    settings.address,
                    namespace=settings.namespace,
                    tls=settings.tls,
                    api_key=os.environ.get("TEMPORAL_API_KEY"),
                    data_converter=self._converter,
                )
        except (RuntimeError, TimeoutError) as error:
            raise ConfigError(f"no Temporal answers at {settings.address}", key="temporal.address") from error
