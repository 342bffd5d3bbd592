"""Turns: how soon they begin, how long they take, and many at once."""

import asyncio
import os
import time
import uuid
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
from temporalio.client import Client, WithStartWorkflowOperation
from temporalio.common import WorkflowIDConflictPolicy
from temporalio.worker import Worker

from tests.bench.a2a import BURST, call, message, open_task
from tests.bench.bare import Bare, nothing
from tests.bench.table import row
from tests.bench.timing import median, timed


async def first_event(client: httpx.AsyncClient) -> float:
    """Measure the time to the first event of a new task, in seconds."""
    body = {"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": {"message": message("hi")}}
    started = time.perf_counter()
    async with client.stream("POST", "/rpc", json=body, headers={"A2A-Version": "1.0"}) as response:
        times = [time.perf_counter() async for line in response.aiter_lines() if line.startswith("data:")]
    return times[0] - started


async def whole_turn(client: httpx.AsyncClient) -> float:
    """Measure a whole first turn, blocking."""
    return await timed(lambda: open_task(client))()


async def follow_up(client: httpx.AsyncClient) -> float:
    """Measure a follow-up turn, blocking."""
    task = await open_task(client)
    again = {**message("hi", task["id"]), "contextId": task["contextId"]}
    return await timed(lambda: call(client, "SendMessage", message=again))()


async def measure_latency(ours: httpx.AsyncClient, theirs: httpx.AsyncClient) -> None:
    """First event and turns, against the in-memory server."""
    for what, measure, goal in (
        ("first event of a new task", first_event, 12),
        ("a whole turn", whole_turn, 14),
        ("a follow-up turn", follow_up, 12),
    ):
        base = await median(lambda measure=measure: measure(theirs))
        took = await median(lambda measure=measure: measure(ours))
        row(what, f"{took * 1e3:.1f} ms = {took / base:.1f} x", f"{base * 1e3:.1f} ms in memory", f"<= {goal} x")


async def measure_burst(ours: httpx.AsyncClient, temporal: Client, server_pid: int) -> None:
    """200 conversations at once, against as many bare workflows."""

    async def bare(number: int) -> None:
        operation = _bare_start()
        async with slots:
            await temporal.execute_update_with_start_workflow(Bare.ask, str(number), start_workflow_operation=operation)
        await (await operation.workflow_handle()).result()

    async def conversation(number: int) -> None:
        task = await open_task(ours, f"n{number}")
        assert task["status"]["state"] == "TASK_STATE_INPUT_REQUIRED", task["status"]

    slots = asyncio.Semaphore(16)
    async with Worker(temporal, task_queue="bare", workflows=[Bare], activities=[nothing]):
        await _measure_start(ours, temporal)
        base = await _burst(bare)
    before, mine = _cpu_of(server_pid), time.process_time()
    rate = await _burst(conversation)
    server, own = _cpu_of(server_pid) - before, time.process_time() - mine
    row(
        f"{BURST} conversations at once",
        f"{rate:.1f} turns/s, 0 failed = {rate / base:.0%}",
        f"{base:.1f} bare workflows/s",
        ">= 12/s, >= 50 %",
    )
    row("CPU per turn, embedded server", f"{server / BURST * 1e3:.0f} ms", "-", "<= 60 ms")
    row("CPU per turn, our process (and the client's)", f"{own / BURST * 1e3:.0f} ms", "-", "<= 70 ms")


async def _measure_start(ours: httpx.AsyncClient, temporal: Client) -> None:
    """First event of a durable task, against a bare update-with-start with one local activity."""

    async def bare() -> None:
        await temporal.execute_update_with_start_workflow(Bare.ask, "hi", start_workflow_operation=_bare_start())

    base = await median(timed(bare))
    took = await median(lambda: first_event(ours))
    row("first event of a new task", f"{took / base:.2f} x", f"{base * 1e3:.1f} ms bare update-with-start", "<= 1.5 x")


def _bare_start() -> WithStartWorkflowOperation[Any, Any]:
    """Start a bare workflow."""
    return WithStartWorkflowOperation(
        Bare.run,
        id=f"bare-{uuid.uuid4().hex}",
        task_queue="bare",
        id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
        execution_timeout=timedelta(minutes=5),
    )


async def _burst(start: Callable[[int], Awaitable[None]]) -> float:
    """Start so many at once; answers how many ended per second. One that fails fails the run."""
    started = time.perf_counter()
    await asyncio.gather(*(start(number) for number in range(BURST)))
    return BURST / (time.perf_counter() - started)


def _cpu_of(pid: int) -> float:
    """CPU seconds that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
