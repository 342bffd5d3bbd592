"""Work that goes on beside a block, and ends with it.

Unlike a task group around a `yield`, it lets the block's own exception out as it is.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any


@asynccontextmanager
async def in_background(
    work: Coroutine[Any, Any, None], stop: Callable[[], None] | None = None
) -> AsyncGenerator[asyncio.Task[None]]:
    """Run work beside the block.

    Args:
        work: What to run.
        stop: Asks it to end, and it is waited for; without, it is cancelled.
    """
    task = asyncio.create_task(work)
    try:
        yield task
    finally:
        if stop is None:
            task.cancel()
        else:
            stop()
        with suppress(asyncio.CancelledError):
            await task
