"""Composes the engine: workflows, activities, the model and housekeeping around one Temporal worker."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta
from typing import Final

from temporalio.client import Client
from temporalio.worker import Worker

from tiny_harness.background import in_background
from tiny_harness.bus import Bus
from tiny_harness.settings import Settings
from tiny_harness.store import Store
from tiny_harness_engine.activities.commit import CommitActivities
from tiny_harness_engine.activities.step import StepActivity
from tiny_harness_engine.calls import HEARTBEAT_THROTTLE
from tiny_harness_engine.housekeeping import Housekeeping
from tiny_harness_engine.models import ModelProvider
from tiny_harness_engine.models.provider import open_provider
from tiny_harness_engine.workflows.task import TaskWorkflow

GRACE: Final = timedelta(seconds=3)
"""How long running activities may go on when the worker stops; a step that is cut runs again elsewhere."""
CACHED_WORKFLOWS: Final = 500
CONCURRENT_STEPS: Final = 100


Provider = Callable[[Settings], AbstractAsyncContextManager[ModelProvider]]


@asynccontextmanager
async def open_worker(
    settings: Settings, *, store: Store, bus: Bus, temporal: Client, provider: Provider = open_provider
) -> AsyncGenerator[None]:
    """Run the engine while the block runs."""
    queue = settings.temporal.task_queue
    async with provider(settings) as model:
        commits = CommitActivities(store, bus)
        worker = Worker(
            temporal,
            task_queue=queue,
            workflows=[TaskWorkflow],
            activities=[commits.commit, commits.load, StepActivity(settings, store, bus, model).step],
            max_cached_workflows=CACHED_WORKFLOWS,
            max_concurrent_activities=CONCURRENT_STEPS,
            max_heartbeat_throttle_interval=HEARTBEAT_THROTTLE,
            graceful_shutdown_timeout=GRACE,
        )
        async with worker, in_background(Housekeeping(store, bus, temporal, queue).run()):
            yield
