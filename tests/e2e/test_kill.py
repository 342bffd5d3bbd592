"""`kill -9` of everything at every step of a turn: nothing is lost, doubled or reordered."""

import asyncio
import itertools
import os
import signal
import statistics
import time
from pathlib import Path

import pytest

from tests.e2e.process import HarnessProcess, Ledger, running, until_gone

IS_SOAK = bool(os.environ.get("TINY_HARNESS_SOAK"))
ROUNDS = 50 if IS_SOAK else 10
CROSSINGS = 8
"""Crossings of one turn: both sides of the input's commit, the model, the step's record and the reply's commit."""
ANSWERED_WITHIN_S = 35


async def hold_at(harness: HarnessProcess, crossing: int) -> str:
    """Let crossings pass until the given one, which is held."""
    for _ in range(crossing):
        await harness.crossing()
        harness.go()
    return await harness.crossing()


async def until_answered(home: Path, acknowledged: set[str]) -> None:
    """Wait until every acknowledged message has its turn's end in the store."""
    async with asyncio.timeout(ANSWERED_WITHIN_S):
        while not acknowledged <= set(Ledger(home).answered):  # noqa: ASYNC110 - another process's database
            await asyncio.sleep(0.2)


def check(home: Path, acknowledged: set[str]) -> None:
    ledger = Ledger(home)
    assert acknowledged - set(ledger.stored) == set(), "acknowledged but not in the store"
    assert set(ledger.stored) - set(ledger.answered) == set(), "in the store but unanswered"
    assert len(ledger.answered) == len(set(ledger.answered)), "answered twice"
    assert len(ledger.stored) == len(set(ledger.stored)), "stored twice"
    assert ledger.repeated_steps() == [], "a recorded model step was called again"
    for numbers in ledger.numbers.values():
        assert numbers == list(range(1, len(numbers) + 1)), "a number is missing or doubled"


@pytest.mark.timeout(3600 if IS_SOAK else 600)
@pytest.mark.parametrize("forget", [False, True], ids=["temporal kept", "temporal's database deleted"])
async def test_a_conversation_survives_a_kill_at_every_step(tmp_path: Path, forget: bool) -> None:
    home = tmp_path / "home"
    acknowledged: set[str] = set()
    task_id: str | None = None
    ready: list[float] = []
    answered: list[float] = []
    # Without Temporal's database half the rounds will do, at every other crossing.
    crossings = itertools.cycle(range(0, CROSSINGS, 2 if forget else 1))
    rounds = ROUNDS if IS_SOAK or not forget else ROUNDS // 2
    for number, crossing in zip(range(rounds), crossings, strict=False):
        async with running(home, free=False) as harness:
            ready.append(harness.ready_s)
            send = asyncio.create_task(harness.send(f"m{number}", f"w{number}", task_id, key="the task"))
            held = asyncio.create_task(hold_at(harness, crossing))
            async with asyncio.timeout(30):
                where = await held
            assert where.startswith(("before", "after")[crossing % 2]), where
            await harness.end(signal.SIGKILL)
            got = await send
        if got:
            acknowledged.add(f"m{number}")
            task_id = got
        await until_gone(home)
        if forget:
            for file in home.glob("temporal.db*"):
                file.unlink()
        async with running(home) as harness:
            ready.append(harness.ready_s)
            started = time.monotonic()
            # A different message comes first; then the client of the killed one sends it again, as it was told to.
            other = await harness.send(f"n{number}", f"v{number}", task_id, key="the task")
            acknowledged |= {f"n{number}"} if other else set()
            task_id = task_id or other
            again = await harness.send(f"m{number}", f"w{number}", task_id)
            acknowledged |= {f"m{number}"} if again else set()
            assert again == other == task_id
            await until_answered(home, acknowledged)
            answered.append(time.monotonic() - started)
            await harness.end(signal.SIGTERM)
        await until_gone(home)
        check(home, acknowledged)
    print(
        f"\n{rounds} kills: ready p50 {statistics.median(ready):.1f} s, "
        f"answered p50 {statistics.median(answered):.1f} s, max {max(answered):.1f} s"
    )
    assert not IS_SOAK or statistics.median(ready) <= 3.0, "other tests share the machine, but not in a soak"
