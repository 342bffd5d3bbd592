"""The engine killed (`-9`) and started again between any two rungs of the ladder, on the real server (adr-042)."""

import asyncio
import os
import shutil
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from temporalio.testing import WorkflowEnvironment

from tests.integration.supervision.day import Day, beginning, until

pytestmark = pytest.mark.timeout(240)

IS_SOAK = bool(os.environ.get("TINY_HARNESS_SOAK"))
LADDER_S = (5, 1, 2, 5, 10, 30, 30) if IS_SOAK else (3, 2, 3)
"""Seconds from each rung to the next, the last until the stall. In the soak, a second for each minute of the ladder."""
SLACK_S = 15
"""How late a rung may be on a busy machine: the engine may have just been killed."""


class WallClock:
    """Time as it passes."""

    async def get_current_time(self) -> datetime:
        return datetime.now(UTC)

    async def sleep(self, duration: timedelta) -> None:
        await asyncio.sleep(duration.total_seconds())


def hurry() -> str:
    """Lines of the configuration."""
    first, *rest, last = (seconds / 60 for seconds in LADDER_S)
    return f"quiet_minutes = {first}\nladder_minutes = {rest}\nstalled_after_minutes = {last}\n"


async def test_no_rung_is_lost_or_doubled_by_kills_between_them(tmp_path: Path) -> None:
    binary = shutil.which("temporal", path=str(Path(sys.executable).parent))
    assert binary is not None
    async with await WorkflowEnvironment.start_local(
        ip="127.0.0.1", dev_server_existing_path=binary, dev_server_log_level="error"
    ) as server:
        address = server.client.service_client.config.target_host
        async with beginning(tmp_path, address, WallClock(), supervision=hurry()) as day:
            await climb(day)


async def climb(day: Day) -> None:
    """Kill the engine after each rung, and compare what happened with the ladder."""
    task_id = await day.give("paint")
    await day.until(task_id, "WORKING")
    for rung in range(1, len(LADDER_S)):

        async def is_reminded(count: int = rung) -> bool:
            return (await reminders(day, task_id)) >= count

        await until(is_reminded, patience_s=LADDER_S[rung - 1] + SLACK_S)
        await day.engine.kill()
        await day.engine.start()

    async def is_stalled() -> bool:
        record = await day.store.task(task_id)
        return record is not None and record.snapshot.supervision is not None and record.snapshot.supervision.is_stalled

    await until(is_stalled, patience_s=LADDER_S[-1] + SLACK_S)
    told = [(minute * 60, kind) for minute, kind, _ in await day.told() if kind != "starts"]
    assert [kind for _, kind in told] == ["reminds"] * (len(LADDER_S) - 1) + ["stalls"]
    assert await reminders(day, task_id) == len(LADDER_S) - 1
    before = 0.0
    for (at, _), gap in zip(told, LADDER_S, strict=True):
        assert gap - 1 <= at - before <= gap + SLACK_S
        before = at
    said = [event.payload for event in await day.store.events(task_id, 0, 1_000) if "Reminder: these" in event.payload]
    assert len(said) == len(LADDER_S) - 1


async def reminders(day: Day, task_id: str) -> int:
    """How often the worker was reminded, as the store has it."""
    record = await day.store.task(task_id)
    assert record is not None
    assert record.snapshot.supervision is not None
    return record.snapshot.supervision.reminders
