"""Whether a process has what it works with: the store, Temporal and the bus. For its `/readyz`."""

import asyncio
from datetime import timedelta
from typing import Final

from temporalio.client import Client
from temporalio.service import RPCError

from tiny_harness.bus import Bus
from tiny_harness.errors import Unavailable
from tiny_harness.store import Store

TEMPORAL_PATIENCE: Final = timedelta(seconds=2)
"""Less than the patience of whoever probes."""


class Readiness:
    """Asks the neighbours of a process, each time anew."""

    def __init__(self, store: Store, temporal: Client | None, bus: Bus) -> None:
        """Without Temporal, as in tests of a gateway alone, nobody asks for it."""
        self._store = store
        self._temporal = temporal
        self._bus = bus

    async def checks(self) -> dict[str, bool]:
        """Say of store and Temporal whether they answer, and of the bus whether it ever did.

        A bus that goes away later leaves a process ready: streams poll the store until it is back, and were every
        gateway taken out for it, nobody would serve anything.
        """
        store, temporal = await asyncio.gather(self._store_answers(), self._temporal_answers())
        return {"store": store, "temporal": temporal, "bus": self._bus.health.was_reached}

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
