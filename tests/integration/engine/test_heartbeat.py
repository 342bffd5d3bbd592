"""The heartbeat on a real Temporal: one schedule for a deployment, the sweep, the snapshot."""

import asyncio
import json
from datetime import timedelta
from typing import Any

import pytest

from tests.integration.engine.conftest import PATIENCE_S, Engine
from tiny_harness.contracts import HEARTBEAT, heartbeat_id
from tiny_harness.settings import Settings
from tiny_harness.temporal.schedules import delete_heartbeat, ensure_heartbeat
from tiny_harness_engine.pacemaker import Pacemaker

pytestmark = pytest.mark.timeout(120)


def with_sections(engine: Engine, **sections: Any) -> Settings:
    return Settings.model_validate({**engine.settings.model_dump(), **sections})


async def beat(engine: Engine) -> dict[str, Any]:
    """Let it beat now, by the schedule that is there once an engine has started; what it saw."""
    await Pacemaker(engine.settings, engine.temporal).run()
    kept, save = asyncio.Event(), engine.store.save_beat

    async def saving(name: str, body: str) -> None:
        await save(name, body)
        kept.set()

    engine.store.save_beat = saving
    await engine.temporal.get_schedule_handle(heartbeat_id(engine.settings.temporal.task_queue)).trigger()
    async with asyncio.timeout(PATIENCE_S):
        await kept.wait()
    found = await engine.store.last_beat(HEARTBEAT)
    assert found is not None
    return json.loads(found[0])


async def test_a_beat_sweeps_what_has_ended_and_counts_what_is_left(engine: Engine) -> None:
    ended, open_task = engine.task(), engine.task()
    await ended.start("m1", "hello")
    await ended.until_state("INPUT_REQUIRED")
    await ended.control("c1", "complete")
    await ended.until_state("COMPLETED")
    await open_task.start("m2", "hello")
    await open_task.until_state("INPUT_REQUIRED")
    seen = await beat(engine)
    assert seen == {"tasks": {"COMPLETED": 1, "INPUT_REQUIRED": 1}, "engines": 1, "deleted": 0}


async def test_what_is_older_than_retention_says_is_deleted(stopped: Engine) -> None:
    stopped.settings = with_sections(stopped, retention={"tasks_days": 1e-9})
    async with stopped.working():
        ended, open_task = stopped.task(), stopped.task()
        await ended.start("m1", "hello")
        await ended.until_state("INPUT_REQUIRED")
        await ended.control("c1", "complete")
        await ended.until_state("COMPLETED")
        await open_task.start("m2", "hello")
        await open_task.until_state("INPUT_REQUIRED")
        seen = await beat(stopped)
    assert (seen["tasks"], seen["deleted"]) == ({"INPUT_REQUIRED": 1}, 1)
    assert await stopped.store.task(ended.id) is None
    assert await stopped.store.task(open_task.id) is not None


async def test_whoever_starts_finds_the_schedule_and_gives_it_its_interval(stopped: Engine) -> None:
    queue, temporal = stopped.settings.temporal.task_queue, stopped.temporal
    handle = temporal.get_schedule_handle(heartbeat_id(queue))
    async with asyncio.TaskGroup() as group:
        for _ in range(4):
            group.create_task(ensure_heartbeat(temporal, queue, timedelta(hours=1)))
    await handle.pause()
    await ensure_heartbeat(temporal, queue, timedelta(hours=2))
    found = await handle.describe()
    assert [each.every for each in found.schedule.spec.intervals] == [timedelta(hours=2)]
    assert found.schedule.state.paused, "an operator's pause stays"
    assert await delete_heartbeat(temporal, queue)
    assert not await delete_heartbeat(temporal, queue)


async def test_an_engine_that_is_told_not_to_makes_no_schedule(stopped: Engine) -> None:
    settings = with_sections(stopped, heartbeat={"enabled": False})
    await Pacemaker(settings, stopped.temporal).run()
    assert not await delete_heartbeat(stopped.temporal, settings.temporal.task_queue)
