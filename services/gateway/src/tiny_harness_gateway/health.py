"""Is this gateway alive, and can it do its work?"""

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from tiny_harness.bus import Bus
from tiny_harness.readiness import Readiness


class Health:
    """`/healthz` and `/readyz`."""

    def __init__(self, readiness: Readiness, bus: Bus, *, hears_engine: bool) -> None:
        self._readiness = readiness
        self._bus = bus
        self._hears_engine = hears_engine

    async def alive(self, _request: Request) -> Response:
        """Answer 200: the process serves. Says whether its streams hear the bus or poll the store meanwhile."""
        is_hearing = self._hears_engine and self._bus.health.is_reached
        return JSONResponse({"status": "ok", "streams": "bus" if is_hearing else "polling"})

    async def ready(self, _request: Request) -> Response:
        """Answer 200 if all that a gateway needs is there, else 503 with what is not."""
        checks = await self._readiness.checks()
        return JSONResponse(checks, 200 if all(checks.values()) else 503)
