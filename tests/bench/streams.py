"""From a published event to everybody who watches: through Redis and one gateway, against polling the store.

The bench is the engine (it commits, then publishes) and all of the clients; the gateway is a process of its own.
"""

import asyncio
import os
import random
import statistics
import sys
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.bench.gateway import TOKEN
from tests.bench.table import row
from tests.valkey import running_valkey
from tiny_harness.bus import Bus, Frame, open_bus
from tiny_harness.contracts import TaskSnapshot
from tiny_harness.ext.task import Participant
from tiny_harness.seal import make_key
from tiny_harness.settings import Settings
from tiny_harness.states import TaskState
from tiny_harness.store import Commit, NewEvent, Store, open_store

ROUNDS: Final = {1: 100, 100: 60, 1_000: 40}
"""Events that are sent to so many subscribers."""
POLLED: Final = {1: 40, 100: 40}
"""The same of the baseline: with more subscribers, polling collapses."""
PAUSE_S: Final = 0.25
"""An event comes at a random moment within this time, so that no way is met at its best or its worst."""
CLOG_EVENTS: Final = 150
CLOG_CHARS: Final = 60_000
"""So much is sent to a reader that reads nothing, more than the system's buffers hold."""
WARM_UP: Final = 3
GOALS: Final = {
    1: "p50 <= 3",
    100: "p50 <= 10, >= 20x below polling; <= 80 us",
    1_000: "p50 <= 60, p95 <= 120; <= 80 us",
}
PATIENCE_S: Final = 30
_PAYLOAD: Final = (
    '{"statusUpdate":{"taskId":"%s","contextId":"c","status":{"state":"TASK_STATE_WORKING"},"metadata":{"more":"%s"}}}'
)
TICKS: Final = os.sysconf("SC_CLK_TCK")


class Client(asyncio.Protocol):
    """A subscriber, as cheap as can be: it notes when an event's number came."""

    def __init__(self, port: int, task_id: str, crowd: "Crowd") -> None:
        self._port = port
        self._task_id = task_id
        self._crowd = crowd
        self._tail = b""

    def connection_made(self, transport: Any) -> None:
        head = (
            f"GET /rest/tasks/{self._task_id}:subscribe HTTP/1.1",
            f"Host: 127.0.0.1:{self._port}",
            f"Authorization: Bearer {TOKEN}",
            "X-Participant-Id: ann",
            "A2A-Version: 1.0",
            "Last-Event-ID: 0",
        )
        transport.write("\r\n".join((*head, "", "")).encode())

    def data_received(self, data: bytes) -> None:
        seen = self._tail + data
        if self._crowd.mark in seen:
            self._crowd.arrived()
            self._tail = b""
        else:
            self._tail = seen[-64:]


class Crowd:
    """All subscribers, and who of them has the current event."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._times: list[float] = []
        self._all = asyncio.Event()
        self.mark = b""
        self.expect(1)

    def expect(self, seq: int) -> None:
        """Wait for an event from now on."""
        self.mark = b"id: %d\n" % seq
        self._times = []
        self._all.clear()

    def arrived(self) -> None:
        """Note that one more has it."""
        self._times.append(time.perf_counter())
        if len(self._times) == self._size:
            self._all.set()

    async def times(self) -> list[float]:
        """Wait until all have it."""
        async with asyncio.timeout(PATIENCE_S):
            await self._all.wait()
        return self._times


@dataclass(frozen=True, slots=True)
class Measured:
    """What a run has shown."""

    latencies_ms: Sequence[float]
    cpu_us: float
    """Of the gateway, for one delivery; with one subscriber that is all that an event costs, with the time between."""

    @property
    def words(self) -> str:
        """The times that half and 95 of 100 deliveries took, and the CPU of each."""
        p95 = statistics.quantiles(self.latencies_ms, n=20)[-1]
        return f"p50 {self.p50_ms:.1f} ms, p95 {p95:.1f} ms, {self.cpu_us:.0f} us of CPU"

    @property
    def p50_ms(self) -> float:
        """The time that half of the deliveries took."""
        return statistics.median(self.latencies_ms)


class Task:
    """One task, written and published as an engine does."""

    def __init__(self, store: Store, bus: Bus, task_id: str) -> None:
        self._store = store
        self._bus = bus
        self.id = task_id
        self.head = 0

    async def event(self, size: int = 400) -> float:
        """Commit an event and publish it; gives the moment in between."""
        ann = Participant(id="ann", kind="human", role="reporter")
        seq = self.head + 1
        payload = _PAYLOAD % (self.id, "x" * size)
        snapshot = TaskSnapshot(
            task_id=self.id, context_id="c", state=TaskState.WORKING, head=self.head, participants=(ann,)
        )
        written = NewEvent("task" if seq == 1 else "state", lambda *_: payload)
        await self._store.commit(
            Commit(self.id, f"bench:{seq}", self.head, [written], snapshot, "{}" if seq == 1 else "", ())
        )
        self.head = seq
        moment = time.perf_counter()
        self._bus.publish(Frame(self.id, seq, payload, "state"))
        return moment


async def measure_streams(home: Path) -> None:
    """Measure each number of subscribers, and the baseline."""
    os.environ.setdefault("TINY_HARNESS_SEAL_KEYS", make_key())
    async with running_valkey(home) as server:
        os.environ["TINY_HARNESS_REDIS_URL"] = server.url
        settings = Settings.model_validate({"store": {"sqlite_path": home / "store.db"}})
        async with open_store(settings) as store, open_bus(settings) as bus:
            polled = {
                size: await _measure(home, "polling", Task(store, bus, f"polled-{size}"), size, rounds)
                for size, rounds in POLLED.items()
            }
            for size, rounds in ROUNDS.items():
                ours = await _measure(home, "redis", Task(store, bus, f"followed-{size}"), size, rounds)
                base = polled.get(size)
                ratio = f"{base.words} ({base.p50_ms / ours.p50_ms:.0f}x)" if base else "-"
                row(f"event to {size} subscribers through Redis", ours.words, ratio, GOALS[size])
            size = max(ROUNDS)
            clog = Task(store, bus, "clog")
            beside = await _measure(home, "redis", Task(store, bus, "beside"), size, ROUNDS[size], clog)
            row("the same beside one that reads nothing", beside.words, "-", "as without it")


async def _measure(home: Path, way: str, task: Task, size: int, rounds: int, clog: Task | None = None) -> Measured:
    """Send events to so many subscribers, beside one of another task that reads nothing, if there is such a task."""
    async with AsyncExitStack() as stack:
        pid, port = await stack.enter_async_context(_gateway(home, way))
        await task.event()
        if clog is not None:
            await _stall(stack, port, clog)
        crowd = Crowd(size)
        for _ in range(size):
            client, _ = await _connect(port, task.id, crowd)
            stack.callback(client.close)
        await crowd.times()
        latencies: list[float] = []
        started = 0.0
        for number in range(WARM_UP + rounds):
            if number == WARM_UP:
                started, latencies = _cpu_s(pid), []
            crowd.expect(task.head + 1)
            await asyncio.sleep(random.uniform(0, PAUSE_S))
            sent = await task.event()
            latencies += [1_000 * (arrived - sent) for arrived in await crowd.times()]
        return Measured(latencies, 1e6 * (_cpu_s(pid) - started) / len(latencies))


async def _connect(port: int, task_id: str, crowd: Crowd) -> tuple[Any, Client]:
    loop = asyncio.get_running_loop()
    return await loop.create_connection(lambda: Client(port, task_id, crowd), "127.0.0.1", port)


async def _stall(stack: AsyncExitStack, port: int, clog: Task) -> None:
    """Subscribe and read nothing, until the gateway can write no more."""
    await clog.event()
    crowd = Crowd(1)
    transport, _ = await _connect(port, clog.id, crowd)
    stack.callback(transport.abort)
    await crowd.times()
    transport.pause_reading()
    for _ in range(CLOG_EVENTS):
        await clog.event(CLOG_CHARS)


@asynccontextmanager
async def _gateway(home: Path, way: str) -> AsyncGenerator[tuple[int, int]]:
    """Run a gateway; its process and its port."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.bench.gateway", str(home), way), stdout=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        yield process.pid, int(await process.stdout.readline())
    finally:
        process.kill()
        await process.wait()


def _cpu_s(pid: int) -> float:
    """Seconds of CPU that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS
