"""Reminders, stalls and expiry to the minute, on Temporal's time-skipping server (adr-042).

That server listens on all interfaces: each day runs in a network namespace of its own.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.tools import go_without, require_tool

pytestmark = pytest.mark.timeout(180)

PATIENCE_S = 150
ROOT = Path(__file__).parents[3]
RUNGS = (5, 6, 8, 13, 23, 53)

Told = list[list[Any]]


def live(day: str, folder: Path) -> Told:
    """Live a day; what the worker's supervisor did: minute, kind, places of the tasks."""
    unshare = [require_tool("unshare"), "--map-root-user", "--net"]
    if subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode:
        go_without("this system lets nobody make a network namespace: allow unprivileged user namespaces")
    folder.mkdir(mode=0o700)
    done = subprocess.run(
        [*unshare, sys.executable, "-m", "tests.integration.supervision.day", day, str(folder)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3_000:]
    return json.loads(done.stdout)


def only(told: Told, *kinds: str) -> list[tuple[int, tuple[int, ...]]]:
    return [(minute, tuple(places)) for minute, kind, places in told if kind in kinds]


def test_the_ladder_is_climbed_to_the_minute(tmp_path: Path) -> None:
    told = live("ladder", tmp_path / "h")
    assert only(told, "reminds") == [(minute, (0,)) for minute in RUNGS]
    assert only(told, "stalls") == [(83, (0,))]


def test_one_reminder_names_all_ten_due_tasks(tmp_path: Path) -> None:
    told = live("ten", tmp_path / "h")
    assert only(told, "reminds") == [(minute, tuple(range(10))) for minute in RUNGS]
    assert only(told, "stalls") == [(83, (place,)) for place in range(10)]


def test_no_hour_has_more_than_six_reminders(tmp_path: Path) -> None:
    told = live("apart", tmp_path / "h")
    minutes = [minute for minute, _ in only(told, "reminds")]
    assert len(minutes) > 6
    assert all(sum(at <= other < at + 60 for other in minutes) <= 6 for at in minutes)
    assert sorted(place for _, places in only(told, "stalls") for place in places) == list(range(10))


def test_nobody_is_reminded_while_a_person_is_awaited_or_something_runs_or_the_worker_was_stopped(
    tmp_path: Path,
) -> None:
    assert only(live("forbidden", tmp_path / "h"), "reminds", "stalls") == []


def test_a_task_expires_to_the_minute_after_its_warnings(tmp_path: Path) -> None:
    told = live("expiry", tmp_path / "h")
    assert only(told, "warns") == [(20 * 60, (0,)), (23 * 60, (0,))]
    assert only(told, "expires") == [(24 * 60, (0,))]


def test_with_no_task_open_nothing_wakes(tmp_path: Path) -> None:
    assert only(live("nobody", tmp_path / "h"), "reminds", "stalls", "warns", "expires") == []
