"""Runs all benchmarks and prints one table: `python -m tests.bench`."""

import asyncio
import os
import platform
import re
import resource
import statistics
import subprocess
import sys
import sysconfig
import tempfile
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

from tests.bench.bare import Bare, nothing
from tests.bench.baseline import in_memory_app
from tests.e2e.process import children_of
from tiny_harness.local import running_harness
from tiny_harness.settings import Settings
from tiny_harness.web_server import serving

ROUNDS = 60
BURST = 200
SCRIPT = '[[rules]]\nreply = "re: {text}"\n'
rows: list[tuple[str, str, str, str]] = []


def row(what: str, measured: str, baseline: str, goal: str) -> None:
    """Add a line to the table, and show it at once."""
    rows.append((what, measured, baseline, goal))
    print(f"  {what}: {measured} (baseline {baseline}; goal {goal})", file=sys.stderr, flush=True)


def message(text: str, task_id: str = "") -> dict[str, Any]:
    """Make a message."""
    return {"messageId": uuid.uuid4().hex, "role": "ROLE_USER", "parts": [{"text": text}], "taskId": task_id}


async def call(client: httpx.AsyncClient, method: str, **params: Any) -> dict[str, Any]:
    """Call a method that answers once."""
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return (await client.post("/rpc", json=body, headers={"A2A-Version": "1.0"})).json()["result"]


async def first_event(client: httpx.AsyncClient) -> float:
    """Measure the time to the first event of a new task, in seconds."""
    body = {"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": {"message": message("hi")}}
    started = time.perf_counter()
    async with client.stream("POST", "/rpc", json=body, headers={"A2A-Version": "1.0"}) as response:
        times = [time.perf_counter() async for line in response.aiter_lines() if line.startswith("data:")]
    return times[0] - started


async def median(measure: Callable[[], Awaitable[float]], rounds: int = ROUNDS) -> float:
    """Measure often, after a warm-up."""
    for _ in range(5):
        await measure()
    return statistics.median([await measure() for _ in range(rounds)])


async def whole_turn(client: httpx.AsyncClient) -> float:
    """Measure a whole first turn, blocking."""
    started = time.perf_counter()
    await call(client, "SendMessage", message=message("hi"))
    return time.perf_counter() - started


async def follow_up(client: httpx.AsyncClient) -> float:
    """Measure a follow-up turn, blocking."""
    task = (await call(client, "SendMessage", message=message("hi")))["task"]
    started = time.perf_counter()
    await call(client, "SendMessage", message={**message("hi", task["id"]), "contextId": task["contextId"]})
    return time.perf_counter() - started


async def burst(start: Callable[[int], Awaitable[None]]) -> float:
    """Start so many at once; answers how many ended per second. One that fails fails the run."""
    started = time.perf_counter()
    await asyncio.gather(*(start(number) for number in range(BURST)))
    return BURST / (time.perf_counter() - started)


def cpu_of(pid: int) -> float:
    """CPU seconds that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def port_of(server_pid: int) -> int:
    """Find the port that a Temporal server was started with."""
    found = re.search(r"--port\0(\d+)", Path(f"/proc/{server_pid}/cmdline").read_bytes().decode())
    assert found
    return int(found[1])


def resident_mb() -> float:
    """Resident memory of this process, in MB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1e6


def bare_start() -> WithStartWorkflowOperation[Any, Any]:
    """Start a bare workflow."""
    return WithStartWorkflowOperation(
        Bare.run,
        id=f"bare-{uuid.uuid4().hex}",
        task_queue="bare",
        id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
        execution_timeout=timedelta(minutes=5),
    )


async def measure_start(ours: httpx.AsyncClient, temporal: Client) -> None:
    """First event of a durable task, against a bare update-with-start with one local activity."""

    async def bare(_client: httpx.AsyncClient) -> float:
        started = time.perf_counter()
        await temporal.execute_update_with_start_workflow(Bare.ask, "hi", start_workflow_operation=bare_start())
        return time.perf_counter() - started

    base = await median(lambda: bare(ours))
    took = await median(lambda: first_event(ours))
    row("first event of a new task", f"{took / base:.2f} x", f"{base * 1e3:.1f} ms bare update-with-start", "<= 1.5 x")


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
        operation = bare_start()
        async with slots:
            await temporal.execute_update_with_start_workflow(Bare.ask, str(number), start_workflow_operation=operation)
        await (await operation.workflow_handle()).result()

    async def conversation(number: int) -> None:
        task = (await call(ours, "SendMessage", message=message(f"n{number}")))["task"]
        assert task["status"]["state"] == "TASK_STATE_INPUT_REQUIRED", task["status"]

    slots = asyncio.Semaphore(16)
    async with Worker(temporal, task_queue="bare", workflows=[Bare], activities=[nothing]):
        await measure_start(ours, temporal)
        base = await burst(bare)
    before, mine = cpu_of(server_pid), time.process_time()
    rate = await burst(conversation)
    server, own = cpu_of(server_pid) - before, time.process_time() - mine
    row(
        f"{BURST} conversations at once",
        f"{rate:.1f} turns/s, 0 failed = {rate / base:.0%}",
        f"{base:.1f} bare workflows/s",
        ">= 12/s, >= 50 %",
    )
    row("CPU per turn, embedded server", f"{server / BURST * 1e3:.0f} ms", "-", "<= 60 ms")
    row("CPU per turn, our process (and the client's)", f"{own / BURST * 1e3:.0f} ms", "-", "<= 70 ms")


def measure_commands() -> None:
    """How long commands take that a person waits for."""

    def took(*words: str) -> float:
        times: list[float] = []
        for _ in range(15):
            started = time.perf_counter()
            subprocess.run(words, check=True, capture_output=True, env=env)
            times.append(time.perf_counter() - started)
        return statistics.median(times)

    # As after an install: with compiled files.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    binary = str(Path(sysconfig.get_path("scripts")) / "tiny-harness")
    bare = took(sys.executable, "-c", "pass")
    for flag in ("--version", "--help"):
        mine = took(binary, flag)
        row(
            f"tiny-harness {flag}",
            f"{mine * 1e3:.0f} ms = {mine / bare:.1f} x",
            f"{bare * 1e3:.0f} ms python",
            "<= 3.5 x",
        )
    started = time.perf_counter()
    with subprocess.Popen([binary, "demo"], stdout=subprocess.PIPE, text=True, env=env) as demo:
        assert demo.stdout is not None
        for line in demo.stdout:
            if line.startswith("agent"):
                row("cold demo to its first reply", f"{time.perf_counter() - started:.1f} s", "-", "<= 3.5 s")
                break
        demo.stdout.read()


async def main(home: Path) -> None:
    """Run everything."""
    script = home / "script.toml"
    await asyncio.to_thread(script.write_text, SCRIPT)
    settings = Settings.model_validate(
        {
            "model": {"provider": "scripted"},
            "scripted": {"script": script},
            "store": {"sqlite_path": home / "store.db"},
            "server": {"bind": "127.0.0.1:0", "participant": "ann", "rate_limit_per_minute": 1_000_000},
        }
    )
    app = in_memory_app(settings)
    app.state.stop_streams = lambda: None
    limits = httpx.Limits(max_connections=BURST + 10)
    async with running_harness(settings, home=home) as harness, serving(app, home / "base.sock", None):
        row("resident memory after the start", f"{resident_mb():.0f} MB", "-", "<= 150 MB idle")

        def connect(path: Path | None) -> httpx.AsyncClient:
            transport = httpx.AsyncHTTPTransport(uds=str(path), limits=limits)
            return httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=120)

        async with connect(harness.address.socket) as ours, connect(home / "base.sock") as theirs:
            await measure_latency(ours, theirs)
            [server_pid] = children_of(home)
            await measure_burst(ours, await Client.connect(f"127.0.0.1:{port_of(server_pid)}"), server_pid)
        row("resident memory at the end", f"{resident_mb():.0f} MB", "-", "-")
    measure_commands()


def show() -> None:
    """Print the table."""
    cpu = next((line for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line), "unknown CPU")
    print(f"\n{os.cpu_count()} cores, {cpu.partition(':')[2].strip()}, Python {platform.python_version()}\n")
    widths = [max(len(line[column]) for line in rows) for column in range(4)]
    for line in [("what", "measured", "baseline", "goal"), *rows]:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        import uvloop

        uvloop.run(main(Path(folder)))
    show()
    sys.stdout.flush()
    os._exit(0)
