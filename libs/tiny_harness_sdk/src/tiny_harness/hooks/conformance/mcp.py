"""MCP: how good calls are made. Its sessions are the official client's, so that only what is ours is checked."""

import asyncio
import json
from typing import Any

from tiny_harness.errors import HookAbort
from tiny_harness.hooks.conformance.contexts import Probe
from tiny_harness.hooks.conformance.peer import ANSWER_S, Silence
from tiny_harness.hooks.conformance.speaker import Offered, Reply
from tiny_harness.hooks.delivery import Delivery, ExecutorFault, ServiceFault, clean
from tiny_harness.hooks.points import point_names
from tiny_harness.hooks.remote_mcp import McpService
from tiny_harness.hooks.wire import ABORTED, EXECUTOR_FAILED, FAILED_WORDS
from tiny_harness.ids import new_id


class McpSpeaker:
    """Calls tools."""

    def __init__(self, service: McpService) -> None:
        self._service = service

    async def offer(self) -> Offered | str:
        """List its tools, as `Speaker` says."""
        try:
            async with asyncio.timeout(ANSWER_S):
                found = await self._service.offer()
        except TimeoutError:
            return f"no list of tools within {ANSWER_S:g} s"
        except ServiceFault as fault:
            if fault.is_unsent:
                raise Silence(fault.reason, is_refused=True) from fault
            return fault.reason
        except ExecutorFault as fault:
            return fault.reason
        unknown = sorted(found.points - set(point_names()))
        points = tuple(point for point in point_names() if point in found.points)
        return Offered("it", points, faults=tuple(f"there is no hook point {clean(point)!r}" for point in unknown))

    async def ask(self, probe: Probe, delivery_id: str, attempt: int = 1) -> Reply:
        """Call a tool, as `Speaker` says."""
        shown = probe.context.model_copy(update={"delivery_id": delivery_id, "attempt": attempt})
        delivery = Delivery(probe.point, shown.model_dump(mode="json"), delivery_id, attempt)
        error: dict[str, Any] | None = None
        patch = None
        try:
            async with asyncio.timeout(ANSWER_S):
                patch = await self._service.call(delivery)
        except TimeoutError:
            return Reply(probe, delivery_id, fault=f"no answer within {ANSWER_S:g} s", is_late=True)
        except ServiceFault as fault:
            return Reply(probe, delivery_id, fault=fault.reason)
        except HookAbort as abort:
            error = {"code": ABORTED, "message": abort.reason, "data": {"reason": abort.reason}}
        except ExecutorFault as fault:
            error = {"code": EXECUTOR_FAILED, "message": FAILED_WORDS, "data": {"correlation_id": fault.reason}}
        return Reply(probe, delivery_id, patch=patch, error=error)

    def harmless(self) -> bytes:
        """Ping."""
        return json.dumps({"jsonrpc": "2.0", "id": new_id(), "method": "ping"}).encode()
