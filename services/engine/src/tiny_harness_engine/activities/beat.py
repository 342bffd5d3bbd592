"""Heartbeats from an activity's first line to its last.

A dead worker is noticed, and a cancel arrives, only through them; the timeout counts from the eager start, so a model
that is silent must not silence the beat.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

from temporalio import activity

from tiny_harness.background import in_background

INTERVAL_S: Final = 1.0


@asynccontextmanager
async def beating() -> AsyncGenerator[None]:
    """Beat while the block runs."""
    async with in_background(_beat()):
        yield


async def _beat() -> None:
    while True:
        activity.heartbeat()
        await asyncio.sleep(INTERVAL_S)
