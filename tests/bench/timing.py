"""How times are taken: a warm-up first, then often enough; whatever is compared, in turns."""

import statistics
import time
from collections.abc import Awaitable, Callable
from typing import Any

ROUNDS = 60
WARM_UP = 5

Measure = Callable[[], Awaitable[float]]
"""Does something once and tells how many seconds it took."""


def timed(call: Callable[[], Awaitable[Any]]) -> Measure:
    """Make a measure of a call, from before it to its return."""

    async def measure() -> float:
        started = time.perf_counter()
        await call()
        return time.perf_counter() - started

    return measure


async def median(measure: Measure, rounds: int = ROUNDS) -> float:
    """Measure often, after a warm-up."""
    return statistics.median(await _samples([measure], rounds, WARM_UP))


async def medians(base: Measure, ours: Measure, rounds: int = ROUNDS) -> tuple[float, float]:
    """Measure two in turns, so that whatever else the machine does meets both."""
    samples = await _samples([base, ours], rounds, WARM_UP)
    return statistics.median(samples[::2]), statistics.median(samples[1::2])


async def p95(measure: Measure, rounds: int) -> float:
    """Measure often, and give the time that 95 of 100 rounds keep."""
    return statistics.quantiles(await _samples([measure], rounds, WARM_UP), n=20)[-1]


async def _samples(measures: list[Measure], rounds: int, warm_up: int) -> list[float]:
    samples = [await measure() for _ in range(warm_up + rounds) for measure in measures]
    return samples[warm_up * len(measures) :]
