"""What a heartbeat does: the retention sweep, then the snapshot for `/_monitor`. May be done any number of times."""

import json
from datetime import timedelta
from typing import Final

from temporalio import activity

from tiny_harness.contracts import HEARTBEAT
from tiny_harness.settings import Settings
from tiny_harness.states import TaskState
from tiny_harness.store import Store
from tiny_harness_engine.workflows.heartbeat import BEAT

SEEN_WITHIN: Final = timedelta(minutes=1)
"""How long ago an engine may have reported to count as there."""


class HeartbeatActivity:
    """One deployment's, on one engine."""

    def __init__(self, settings: Settings, store: Store) -> None:
        self._kept_for = timedelta(days=settings.retention.tasks_days)
        self._store = store

    @activity.defn(name=BEAT)
    async def beat(self) -> None:
        """Delete ended tasks that are old enough, and keep what the store holds afterwards."""
        deleted = await self._store.purge(self._kept_for)
        tasks = await self._store.count_tasks()
        engines = await self._store.engines(SEEN_WITHIN)
        snapshot = {
            "tasks": {TaskState(state).word: number for state, number in sorted(tasks.items())},
            "engines": len(engines),
            "deleted": deleted,
        }
        await self._store.save_beat(HEARTBEAT, json.dumps(snapshot))
