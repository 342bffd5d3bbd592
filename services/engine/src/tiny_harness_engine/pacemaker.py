"""Makes sure, when an engine starts, that the deployment has its heartbeat."""

import asyncio
import logging
from datetime import timedelta
from typing import Final

from temporalio.client import Client
from temporalio.service import RPCError

from tiny_harness.settings import Settings
from tiny_harness.temporal.schedules import ensure_heartbeat

log = logging.getLogger(__name__)

RETRY_S: Final = 30.0


class Pacemaker:
    """One engine's care for the schedule. Several at once do no harm."""

    def __init__(self, settings: Settings, temporal: Client) -> None:
        self._settings = settings
        self._temporal = temporal

    async def run(self) -> None:
        """Try until the schedule is there. One that is deleted afterwards stays so until the next start."""
        if not self._settings.heartbeat.enabled:
            return
        every = timedelta(minutes=self._settings.heartbeat.interval_minutes)
        while True:
            try:
                await ensure_heartbeat(self._temporal, self._settings.temporal.task_queue, every)
            except RPCError as error:
                log.warning("the heartbeat's schedule cannot be made now, it is tried again: %s", error.message)
            else:
                return
            await asyncio.sleep(RETRY_S)
