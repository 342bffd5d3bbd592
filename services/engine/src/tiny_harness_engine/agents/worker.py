"""What the engine needs to give work to remote agents, as one piece for its worker."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from temporalio.client import Client
from temporalio.worker import Worker

from tiny_harness.settings import Settings
from tiny_harness.store import Store
from tiny_harness_engine.activities.remote import RemoteActivities
from tiny_harness_engine.agents.book import open_agent_book
from tiny_harness_engine.agents.stand_ins import StandIns
from tiny_harness_engine.calls import HEARTBEAT_THROTTLE
from tiny_harness_engine.remote_calls import QUEUE_SUFFIX
from tiny_harness_engine.runs import Runs
from tiny_harness_engine.workflows.remote import RemoteTaskWorkflow

CONCURRENT_STREAMS: Final = 1_000
GRACE: Final = timedelta(seconds=1)
"""How long streams may go on when the worker stops; one that is cut is opened again elsewhere."""


@dataclass(frozen=True, slots=True)
class Agents:
    """What the engine's worker registers, and whoever starts and stops sub-tasks uses."""

    stand_ins: StandIns
    workflows: Sequence[type[Any]]
    activities: Sequence[Callable[..., Any]]


@asynccontextmanager
async def open_agents(settings: Settings, *, store: Store, temporal: Client, runs: Runs) -> AsyncGenerator[Agents]:
    """Keep the agents at hand while the block runs; streams are read by a worker of their own, if there are agents.

    Without agents the rest is registered all the same: sub-tasks may be left of agents that were configured before.
    """
    queue = settings.temporal.task_queue
    stand_ins = StandIns(store, temporal, queue)
    async with open_agent_book(settings.agents) as book, AsyncExitStack() as stack:
        work = RemoteActivities(store, book, stand_ins, runs)
        if settings.agents:
            streams = Worker(
                temporal,
                task_queue=queue + QUEUE_SUFFIX,
                activities=[work.follow],
                max_concurrent_activities=CONCURRENT_STREAMS,
                max_heartbeat_throttle_interval=HEARTBEAT_THROTTLE,
                graceful_shutdown_timeout=GRACE,
            )
            await stack.enter_async_context(streams)
        activities = [work.send, work.look, work.cancel, work.tell, work.follow_children]
        yield Agents(stand_ins, [RemoteTaskWorkflow], activities)
