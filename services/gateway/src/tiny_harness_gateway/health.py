"""Is this gateway alive, and can it do its work?"""

from datetime import timedelta
from typing import Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from temporalio.client import Client
from temporalio.service import RPCError

from tiny_harness.bus import Bus
from tiny_harness.errors import Unavailable
from tiny_harness.store import Store

TEMPORAL_PATIENCE: Final = timedelta(seconds=2)
"""Less than the patience of whoever probes."""


class Health:
    """`/healthz` and `/readyz`."""

    def __init__(self, store: Store, temporal: Client | None, bus: Bus, *, hears_engine: bool) -> None:
        self._store = store
        self._temporal = temporal
        self._bus = bus
        self._hears_engine = hears_engine

    async def alive(self, _request: Request) -> Response:
        """Answer 200: the process serves. Says whether its streams hear the bus or poll the store meanwhile."""
        is_hearing = self._hears_engine and self._bus.health.is_reached
        return JSONResponse({"status": "ok", "streams": "bus" if is_hearing else "polling"})

    async def ready(self, _request: Request) -> Response:
        """Answer 200 if store and Temporal answer and the bus once did, else 503 with what does not.

        A bus that goes away later leaves the gateway ready: streams poll the store until it is back, and were every
        gateway taken out for it, nobody would serve anything.
        """
        checks = {
            "store": await self._store_answers(),
            "temporal": await self._temporal_answers(),
            "bus": self._bus.health.was_reached,
        }
        return JSONResponse(checks, 200 if all(checks.values()) else 503)

    async def _store_answers(self) -> bool:
        try:
            await self._store.heads(["-"])
        except Unavailable:
            return False
        return True

    async def _temporal_answers(self) -> bool:
        if self._temporal is None:
            return True
        try:
            return await self._temporal.service_client.check_health(timeout=TEMPORAL_PATIENCE)
        except RPCError:
            return False
