"""The engine as a service of its own: any number of them work for one deployment."""

import asyncio

from tiny_harness.config_file import require_model_key
from tiny_harness.local import running_worker
from tiny_harness.settings import Settings


async def serve(settings: Settings) -> None:
    """Work until cancelled; then drain.

    Raises:
        ConfigError, Unavailable: See `running_worker`.
    """
    require_model_key(settings)
    async with running_worker(settings):
        print(f"working on {settings.temporal.address}, queue {settings.temporal.task_queue}", flush=True)
        await asyncio.Event().wait()
