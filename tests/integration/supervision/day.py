"""A day of a worker, on Temporal's time-skipping server: run as a program in a network namespace of its own.

That server listens on all interfaces, so nobody else may reach it. Prints one JSON object: what the worker's supervisor
did and when, in minutes since the first task was given.
"""

import asyncio
import fcntl
import json
import os
import shutil
import signal
import socket
import struct
import sys
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final, Protocol

from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WithStartWorkflowOperation
from temporalio.common import WorkflowIDConflictPolicy
from temporalio.testing import WorkflowEnvironment

from tiny_harness import contracts
from tiny_harness.contracts import Delivery, NewTask, Receipt, Sender, StartTask, supervisor_workflow_id
from tiny_harness.envelope import WorkerUpdate, control_part, update_part
from tiny_harness.settings import Settings
from tiny_harness.store import Store, open_store
from tiny_harness.temporal import open_temporal
from tiny_harness_engine.supervision_calls import GIVE_NOTICE

WORKER: Final = "bob"
PATIENCE_S: Final = 60
LOOK_S: Final = 0.05


@dataclass
class Engine:
    """An engine in a process of its own."""

    config: Path
    process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        self.process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tiny_harness", "--config", str(self.config), "worker"),
            stdout=asyncio.subprocess.PIPE,
            stderr=sys.stderr,
        )
        assert self.process.stdout is not None
        async with asyncio.timeout(PATIENCE_S):
            assert (await self.process.stdout.readline()).startswith(b"working")

    async def kill(self) -> None:
        if self.process is not None and self.process.returncode is None:
            self.process.send_signal(signal.SIGKILL)
            await self.process.wait()


class Clock(Protocol):
    """How time passes."""

    async def get_current_time(self) -> datetime: ...

    async def sleep(self, duration: timedelta) -> None: ...


@dataclass
class Day:
    """The day so far."""

    clock: Clock
    engine: Engine
    client: Client
    store: Store
    settings: Settings
    began: datetime | None = None
    tasks: list[str] = field(default_factory=list[str])

    async def give(self, request: str) -> str:
        """Give the worker a task."""
        if self.began is None:
            self.began = await self.clock.get_current_time()
        task_id = str(uuid.uuid4())
        new = NewTask(context_id="c", lifecycle="supervised", worker=WORKER)
        delivery = Delivery(sender=Sender(id="ann"), message=_message({"text": request}), new_task=new)
        start: WithStartWorkflowOperation[Any, Any] = WithStartWorkflowOperation(
            contracts.TASK_WORKFLOW,
            StartTask(task_id=task_id, first=delivery),
            id=contracts.workflow_id(task_id),
            task_queue=self.settings.temporal.task_queue,
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
        )
        await self.client.execute_update_with_start_workflow(
            contracts.DELIVER, delivery, start_workflow_operation=start, result_type=Receipt
        )
        self.tasks.append(task_id)
        return task_id

    async def send(self, task_id: str, part: dict[str, Any], sender: str = WORKER) -> None:
        """Send a message to a task."""
        delivery = Delivery(sender=Sender(id=sender), message=_message(part))
        handle = self.client.get_workflow_handle(contracts.workflow_id(task_id))
        await handle.execute_update(contracts.DELIVER, delivery, result_type=Receipt)

    async def until(self, task_id: str, word: str) -> None:
        """Wait until the store has a task in a state."""

        async def is_so() -> bool:
            record = await self.store.task(task_id)
            return record is not None and record.snapshot.state.word == word

        await until(is_so)

    async def pass_to(self, minute: float) -> None:
        """Let time pass."""
        assert self.began is not None
        left = self.began + timedelta(minutes=minute) - await self.clock.get_current_time()
        await self.clock.sleep(max(left, timedelta()))

    async def told(self) -> list[list[Any]]:
        """List what the supervisor did: the minute, the kind, and of which tasks, by their places."""
        assert self.began is not None
        found: list[list[Any]] = []
        async for run in self._runs():
            for event in (await run.fetch_history()).events:
                if event.event_type != EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
                    continue
                asked = event.activity_task_scheduled_event_attributes
                if asked.activity_type.name != GIVE_NOTICE:
                    continue
                [request] = await self.client.data_converter.decode(asked.input.payloads, [dict])
                notice = request["notice"]
                ids = notice.get("task_ids") or [notice["task_id"]]
                minute = (event.event_time.ToDatetime(tzinfo=self.began.tzinfo) - self.began).total_seconds() / 60
                found.append([minute, notice["kind"], [self.tasks.index(task_id) for task_id in ids]])
        return found

    async def _runs(self) -> AsyncGenerator[Any]:
        """The runs of the worker's supervisor, the oldest first."""
        handle = self.client.get_workflow_handle(supervisor_workflow_id(WORKER))
        run_id = (await handle.fetch_history()).events[0].workflow_execution_started_event_attributes
        first = self.client.get_workflow_handle(supervisor_workflow_id(WORKER), run_id=run_id.first_execution_run_id)
        while True:
            yield first
            last = (await first.fetch_history()).events[-1]
            if last.event_type != EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW:
                return
            following = last.workflow_execution_continued_as_new_event_attributes.new_execution_run_id
            first = self.client.get_workflow_handle(supervisor_workflow_id(WORKER), run_id=following)


async def ladder(day: Day) -> None:
    """One task, and nobody at work."""
    await day.until(await day.give("paint"), "WORKING")
    await day.pass_to(90)


async def ten(day: Day) -> None:
    """Ten tasks at once."""
    for number in range(10):
        await day.until(await day.give(f"task {number}"), "WORKING")
    await day.pass_to(100)


async def apart(day: Day) -> None:
    """Ten tasks, two minutes from each other."""
    for number in range(10):
        await day.until(await day.give(f"task {number}"), "WORKING")
        await day.clock.sleep(timedelta(minutes=2))
    await day.pass_to(6 * 60)


async def forbidden(day: Day) -> None:
    """A person is awaited; the worker runs something; its people stopped it."""
    blocked, busy, stopped = [await day.give(word) for word in ("blocked", "busy", "stopped")]
    for task_id in (blocked, busy, stopped):
        await day.until(task_id, "WORKING")
    await day.send(blocked, update_part(WorkerUpdate(status="blocked", summary="Which?")))
    await day.send(busy, update_part(WorkerUpdate(status="running", minutes=240)))
    await day.send(stopped, control_part("interrupt"), sender="ann")
    await day.pass_to(200)


async def expiry(day: Day) -> None:
    """Nobody ever comes."""
    task_id = await day.give("wait")
    await day.until(task_id, "WORKING")
    await day.pass_to(25 * 60)
    await day.until(task_id, "CANCELED")


async def nobody(day: Day) -> None:
    """The only task is done, and ten minutes pass."""
    task_id = await day.give("quick")
    await day.until(task_id, "WORKING")
    await day.send(task_id, update_part(WorkerUpdate(status="done", summary="Done.")))
    supervisor = day.client.get_workflow_handle(supervisor_workflow_id(WORKER))
    await supervisor.result()
    length = len((await supervisor.fetch_history()).events)
    await day.pass_to(10)
    assert len((await supervisor.fetch_history()).events) == length
    assert (await supervisor.describe()).close_time is not None


DAYS: Final[dict[str, tuple[Callable[[Day], Awaitable[None]], int]]] = {
    "ladder": (ladder, 1),
    "ten": (ten, 10),
    "apart": (apart, 10),
    "forbidden": (forbidden, 3),
    "expiry": (expiry, 1),
    "nobody": (nobody, 1),
}
"""By name: what happens, and the worker's capacity."""


async def until(is_so: Callable[[], Awaitable[bool]], patience_s: float = PATIENCE_S) -> None:
    """Wait for what another process does to a file."""
    async with asyncio.timeout(patience_s):
        while not await is_so():  # noqa: ASYNC110 - the engine is another process, whose bus we do not hear
            await asyncio.sleep(LOOK_S)


@asynccontextmanager
async def beginning(
    folder: Path, address: str, clock: Clock, *, capacity: int = 1, supervision: str = ""
) -> AsyncGenerator[Day]:
    """Start an engine for a Temporal server, with lines for its `[supervision]`."""
    config = folder / "config.toml"
    config.write_text(
        f'[temporal]\nmode = "remote"\naddress = "{address}"\n'
        f'[store]\nsqlite_path = "{folder / "store.db"}"\n[model]\nprovider = "scripted"\n'
        f'[supervision]\n{supervision}[supervision.workers."{WORKER}"]\ncapacity = {capacity}\n'
    )
    engine = Engine(config)
    await engine.start()
    settings = Settings.load(config)
    try:
        async with open_store(settings) as store, open_temporal(settings, folder) as pending:
            yield Day(clock, engine, await pending.ready(), store, settings)
    finally:
        await engine.kill()


async def main(name: str, folder: Path) -> None:
    """Live a day, and print what happened."""
    live, capacity = DAYS[name]
    server = shutil.which("temporal-test-server", path=str(Path(sys.executable).parent))
    assert server is not None, "temporal-test-server is missing: install the development dependencies"
    async with (
        await WorkflowEnvironment.start_time_skipping(test_server_existing_path=server) as env,
        beginning(folder, env.client.service_client.config.target_host, env, capacity=capacity) as day,
    ):
        await live(day)
        print(json.dumps([[round(minute), *rest] for minute, *rest in await day.told()]), flush=True)
    os._exit(0)  # Temporal's client may abort as the interpreter ends


def bring_loopback_up() -> None:
    """A new network namespace has its loopback interface down."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        up = struct.pack("16sh", b"lo", 1)  # SIOCSIFFLAGS with IFF_UP
        fcntl.ioctl(sock, 0x8914, up)


def _message(part: dict[str, Any]) -> str:
    return json.dumps({"messageId": uuid.uuid4().hex, "role": "ROLE_USER", "parts": [part]})


if __name__ == "__main__":
    bring_loopback_up()
    os.environ["HOME"] = sys.argv[2]
    asyncio.run(main(sys.argv[1], Path(sys.argv[2])))
