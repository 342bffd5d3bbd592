"""`kill -9` of what a cluster consists of, at moments that a seed decides, and how long it took until all was well."""

import asyncio
import random
import statistics
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

from tests.cluster.cluster import Cluster

RECOVERY_S: Final = 120.0
PAUSES_S: Final = (0.3, 3.0)
SHORTEST_S: Final = 0.1
BOTH: Final = 0.3
"""How often a second kind dies together with the first."""

Prove = Callable[[], Awaitable[None]]
"""Proves that the cluster works: a new conversation is answered."""


@dataclass(frozen=True)
class Fault:
    """What died, how long it was away, and how long after its start all was well again."""

    kind: str
    count: int
    down_s: float
    ready_s: float
    recovery_s: float


@dataclass
class Faults:
    """Kills, one after the other, sometimes two kinds at a time, each kind as often as any other."""

    cluster: Cluster
    rng: random.Random
    prove: Prove
    longest_s: float
    """How long what died may stay away."""
    done: list[Fault] = field(default_factory=list[Fault])
    recovered_at: list[float] = field(default_factory=list[float])

    async def run(self, duration_s: float) -> None:
        """Kill for so long, and each kind once at least; everything is back at the end."""
        until = time.monotonic() + duration_s
        deck: list[str] = []
        kinds = list(self.cluster.killable)
        while time.monotonic() < until or {fault.kind for fault in self.done} != set(kinds):
            if not deck:
                deck = self.rng.sample(kinds, len(kinds))
            count = 2 if len(deck) > 1 and self.rng.random() < BOTH else 1
            dying, deck = deck[:count], deck[count:]
            await asyncio.sleep(self.rng.uniform(*PAUSES_S))
            downs = [self.rng.uniform(SHORTEST_S, self.longest_s) for _ in dying]
            await asyncio.gather(*(self._fault(kind, down_s) for kind, down_s in zip(dying, downs, strict=True)))

    async def _fault(self, kind: str, down_s: float) -> None:
        found = self.cluster.killable[kind]
        members = self.rng.sample(found, self.rng.randint(1, len(found)))
        await asyncio.gather(*(member.kill() for member in members))
        await asyncio.sleep(down_s)
        started = time.monotonic()
        async with asyncio.timeout(RECOVERY_S):
            await asyncio.gather(*(member.start() for member in members))
            ready_s = time.monotonic() - started
            await self.prove()
        self.recovered_at.append(time.monotonic())
        self.done.append(Fault(kind, len(members), down_s, ready_s, time.monotonic() - started))

    def table(self) -> str:
        """Show them by kind."""
        row = "{:<12}{:>7}{:>9}{:>13}{:>15}{:>12}"
        lines = [row.format("fault", "times", "killed", "away s p50", "recovery s p50", "max")]
        for kind in self.cluster.killable:
            of_kind = [fault for fault in self.done if fault.kind == kind]
            recoveries = [fault.recovery_s for fault in of_kind]
            away = statistics.median(fault.down_s for fault in of_kind)
            numbers = (f"{away:.1f}", f"{statistics.median(recoveries):.1f}", f"{max(recoveries):.1f}")
            lines.append(row.format(kind, len(of_kind), sum(fault.count for fault in of_kind), *numbers))
        return "\n".join(lines)
