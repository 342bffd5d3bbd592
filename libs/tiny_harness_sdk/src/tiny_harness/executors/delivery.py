"""Which deliveries were answered: a retry gets the same answer, and nothing runs twice (DESIGN: hooks)."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final

from tiny_harness.executors.answers import Answer, Patched
from tiny_harness.hooks.wire import DELIVERY_MEMORY_S

MAX_ANSWERS: Final = 10_000
MAX_BYTES: Final = 64 << 20
"""Of remembered answers; beyond either bound the oldest are forgotten. A retry comes within seconds."""

DeliveryKey = tuple[str, str, str]
"""Key id, hook point, delivery id."""


class Deliveries:
    """Calls that run, and answers of the last minutes."""

    def __init__(
        self,
        *,
        now: Callable[[], float] = time.monotonic,
        max_answers: int = MAX_ANSWERS,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        self._now = now
        self._max_answers = max_answers
        self._max_bytes = max_bytes
        self._running: dict[DeliveryKey, asyncio.Task[Answer]] = {}
        self._answered: dict[DeliveryKey, tuple[float, Answer]] = {}
        self._bytes = 0

    async def once(self, key: DeliveryKey, work: Callable[[], Awaitable[Answer]]) -> Answer:
        """Do a delivery's work, unless it was done: then give the same answer. One that runs is waited for.

        The work goes on when its caller goes away: the retry finds it.
        """
        self._forget(self._now() - DELIVERY_MEMORY_S)
        if key in self._answered:
            return self._answered[key][1]
        if key not in self._running:
            self._running[key] = asyncio.create_task(self._do(key, work))
        return await asyncio.shield(self._running[key])

    async def close(self) -> None:
        """Cancel what runs."""
        running = list(self._running.values())
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def _do(self, key: DeliveryKey, work: Callable[[], Awaitable[Answer]]) -> Answer:
        try:
            answer = await work()
            self._answered[key] = (self._now(), answer)
            self._bytes += _size(answer)
            return answer
        finally:
            del self._running[key]

    def _forget(self, before: float) -> None:
        while self._answered:
            key = next(iter(self._answered))  # the oldest: they stand in the order of their answers
            at, answer = self._answered[key]
            if at > before and len(self._answered) <= self._max_answers and self._bytes <= self._max_bytes:
                return
            del self._answered[key]
            self._bytes -= _size(answer)


def _size(answer: Answer) -> int:
    return answer.size if isinstance(answer, Patched) else 0
