"""Tells the store what this engine offers, and now and then how its hooks and tool servers are.

The card and `/_monitor` read it.
"""

import asyncio
import json
import logging
from collections.abc import Callable
from typing import Any, Final

from tiny_harness.errors import Unavailable
from tiny_harness.hooks.health import HookHealth
from tiny_harness.ids import new_id
from tiny_harness.settings import Settings
from tiny_harness.store import Store
from tiny_harness_engine.catalogue import catalogue
from tiny_harness_engine.registry import Registry

INTERVAL_S: Final = 5.0

log = logging.getLogger(__name__)


class Reporting:
    """One engine's reports."""

    def __init__(
        self,
        settings: Settings,
        store: Store,
        registry: Registry,
        health: HookHealth,
        tool_health: Callable[[], list[dict[str, Any]]],
    ) -> None:
        self._store = store
        self._health = health
        self._tool_health = tool_health
        self._engine_id = new_id()
        choice = settings.choice
        self._digest, self._body = catalogue(
            plugins=registry.reports, commands=registry.commands, models=choice.selectable, default_model=choice.model
        )

    async def publish(self) -> None:
        """Make this engine's catalogue the current one; call it before the engine takes work."""
        await self._store.save_catalogue(self._digest, self._body)
        await self._report()

    async def run(self) -> None:
        """Report until cancelled."""
        while True:
            await asyncio.sleep(INTERVAL_S)
            try:
                await self._report()
            except Unavailable as error:
                log.info("hook health could not be reported: %s", error.reason)

    async def _report(self) -> None:
        await self._store.report_engine(self._engine_id, self._digest, json.dumps(self._all()))

    def _all(self) -> dict[str, Any]:
        return {"hooks": self._health.snapshot(), "tools": self._tool_health()}
