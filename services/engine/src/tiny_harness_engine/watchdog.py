"""Watches the event loop from a thread, and names the hook that blocks it.

A hook in this process that computes or waits without `await` stops everything else here, and no deadline can end it:
only its author can. So that somebody tells the author, it is logged while it happens.
"""

import asyncio
import logging
import threading
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

from tiny_harness.background import in_background
from tiny_harness.hooks.chain import TASK_PREFIX

BEAT_S: Final = 0.25
BLOCKED_AFTER_S: Final = 2.0

log = logging.getLogger(__name__)


class Watchdog:
    """Watches one event loop. Create it on that loop."""

    def __init__(self, blocked_after_s: float = BLOCKED_AFTER_S) -> None:
        self._loop = asyncio.get_running_loop()
        self._blocked_after_s = blocked_after_s
        self._beaten_at = time.monotonic()
        self._is_over = threading.Event()

    @asynccontextmanager
    async def watching(self) -> AsyncGenerator[None]:
        """Watch while the block runs."""
        thread = threading.Thread(target=self._watch, name="loop-watchdog", daemon=True)
        thread.start()
        try:
            async with in_background(self._beat()):
                yield
        finally:
            self._is_over.set()
            thread.join(timeout=1.0)  # it sleeps for BEAT_S at most

    async def _beat(self) -> None:
        while True:
            self._beaten_at = time.monotonic()
            await asyncio.sleep(BEAT_S)

    def _watch(self) -> None:
        told = 0.0
        while not self._is_over.wait(BEAT_S):
            beaten_at = self._beaten_at
            if time.monotonic() - beaten_at > self._blocked_after_s and beaten_at != told:
                told = beaten_at  # once for each time that it is blocked
                log.error("the event loop is blocked by %s", self._culprit())

    def _culprit(self) -> str:
        task = asyncio.current_task(self._loop)
        name = task.get_name() if task else ""
        if name.startswith(TASK_PREFIX):
            return f"the hook {name.removeprefix(TASK_PREFIX)}: it must await, or be a plain function"
        return f"the task {name}" if name else "something that is no task"
