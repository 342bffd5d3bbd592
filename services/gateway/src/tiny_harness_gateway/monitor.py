"""`/_monitor`: which engines work, how their hooks are, and what the last heartbeat saw.

For people, and for probes that look closer.
"""

import json
from datetime import timedelta
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from tiny_harness.contracts import HEARTBEAT
from tiny_harness.errors import Unavailable
from tiny_harness.store import EngineReport, Store
from tiny_harness_gateway.errors import http_response

SHOWN_FOR: Final = timedelta(hours=1)
"""How long an engine that reports no more is listed; its age says that it is gone."""

_INDENT: Final = 2


class Monitor:
    """Shows what engines report of themselves."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def show(self, _request: Request) -> Response:
        """Answer 200 with all engines, whatever they say; 503 if the store does not answer."""
        try:
            found = await self._store.engines(SHOWN_FOR)
            current = await self._store.current_catalogue()
            beat = await self._store.last_beat(HEARTBEAT)
            pushes = await self._store.count_pushes()
        except Unavailable as error:
            return http_response(error)
        body = {
            "catalogue": current[0] if current else None,
            "heartbeat": {"age_s": _seconds(beat[1]), **json.loads(beat[0])} if beat else None,
            "push": pushes,
            "engines": [_engine(report) for report in found],
        }
        return Response(json.dumps(body, indent=_INDENT), media_type="application/json")


def _seconds(age: timedelta) -> float:
    return round(age.total_seconds(), 3)


def _engine(report: EngineReport) -> dict[str, Any]:
    return {
        "engine_id": report.engine_id,
        "digest": report.digest,
        "age_s": _seconds(report.age),
        "health": json.loads(report.health),
    }
