"""What a process that serves nothing else answers to whoever watches over it: is it alive, does it do its work?"""

from collections.abc import Generator
from contextlib import contextmanager

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tiny_harness.readiness import Readiness


class Admin:
    """`/healthz` and `/readyz` of an engine. They tell nothing of tasks, and want no credentials."""

    def __init__(self, readiness: Readiness) -> None:
        self._readiness = readiness
        self._is_working = False
        self.app = Starlette(routes=[Route("/healthz", self._alive), Route("/readyz", self._ready)])

    @contextmanager
    def working(self) -> Generator[None]:
        """Say that the engine takes work while the block runs: not yet while it starts, no more once it stops."""
        self._is_working = True
        try:
            yield
        finally:
            self._is_working = False

    async def _alive(self, _request: Request) -> Response:
        """Answer 200: its event loop turns."""
        return JSONResponse({"status": "ok"})

    async def _ready(self, _request: Request) -> Response:
        """Answer 200 if it takes work and has what it needs for it, else 503 with what is amiss."""
        checks = {**await self._readiness.checks(), "engine": self._is_working}
        return JSONResponse(checks, 200 if all(checks.values()) else 503)
