"""Wakes the deliveries of tasks that have news, never in anyone's way: a commit only says so."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

from temporalio.client import Client
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.service import RPCError

from tiny_harness.background import in_background
from tiny_harness.errors import Unavailable
from tiny_harness.push import NEWS, PUSH_WORKFLOW, PushKey, push_ring
from tiny_harness.settings import Settings
from tiny_harness.store import Store
from tiny_harness_engine.activities.deliver import DeliverActivity, push_client
from tiny_harness_engine.push_calls import StartPush
from tiny_harness_engine.workflows.push import PushWorkflow

SWEEP_S: Final = 30.0
"""How often all are looked through: for what other engines left, and what a crash did not say."""
PAGE: Final = 500

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Pushes:
    """What an engine needs to deliver notifications: nothing, if there is no push."""

    workflows: Sequence[type] = ()
    activities: Sequence[Callable[..., Any]] = ()
    notify: Callable[[str], None] = lambda _task_id: None
    """Is told of a task that has new events."""


@asynccontextmanager
async def open_pushes(settings: Settings, *, store: Store, temporal: Client) -> AsyncGenerator[Pushes]:
    """Look after deliveries while the block runs.

    Raises:
        ConfigError: The key is malformed.
    """
    ring = push_ring()
    if ring is None:
        yield Pushes()
        return
    dispatcher = PushDispatcher(store, temporal, settings.temporal.task_queue)
    async with push_client() as client, in_background(dispatcher.run()):
        deliver = DeliverActivity(settings, store, ring, client).deliver
        yield Pushes((PushWorkflow,), (deliver,), dispatcher.notify)


class PushDispatcher:
    """Starts and wakes push workflows on one task queue."""

    def __init__(self, store: Store, temporal: Client, task_queue: str) -> None:
        self._store = store
        self._temporal = temporal
        self._task_queue = task_queue
        self._news: set[str] = set()
        self._has_news = asyncio.Event()

    def notify(self, task_id: str) -> None:
        """Say that a task has new events."""
        self._news.add(task_id)
        self._has_news.set()

    async def run(self) -> None:
        """Wake deliveries until cancelled."""
        while True:
            await self._wake(None)
            try:
                async with asyncio.timeout(SWEEP_S):
                    await self._follow_news()
            except TimeoutError:
                continue

    async def _follow_news(self) -> None:
        while True:
            await self._has_news.wait()
            self._has_news.clear()
            tasks, self._news = self._news, set()
            for task_id in tasks:
                await self._wake(task_id)

    async def _wake(self, task_id: str | None) -> None:
        """Wake the deliveries of one task, or all that are behind; what fails now is found by the next sweep."""
        try:
            await self._start(await self._store.pushes_behind(task_id, PAGE))
        except (Unavailable, RPCError) as error:
            log.warning("deliveries could not be woken, and are looked for again: %s", error)

    async def _start(self, keys: Sequence[PushKey]) -> None:
        for key in keys:
            await self._temporal.start_workflow(
                PUSH_WORKFLOW,
                StartPush(key=key),
                id=key.workflow_id,
                task_queue=self._task_queue,
                id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
                id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
                start_signal=NEWS,
            )
