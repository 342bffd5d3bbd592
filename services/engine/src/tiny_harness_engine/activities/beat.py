"""Heartbeats from an activity's first line to its last.

A dead worker is noticed, and a cancel arrives, only through them; the timeout counts from the eager start, so a model
that is silent must not silence the beat.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Final

from temporalio import activity

INTERVAL_S: Final = 1.0


@asynccontextmanager
async def beating() -> AsyncGenerator[None]:
    """Beat while the block runs."""
    task = asyncio.create_task(_beat())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _beat() -> None:
    while True:
        activity.heartbeat()
        await asyncio.sleep(INTERVAL_S)
