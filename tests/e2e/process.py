"""A harness in a process of its own, to be talked to, held at a crossing, and killed."""

import asyncio
import json
import os
import signal
import sqlite3
import sys
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.e2e.launcher import CALLS
from tiny_harness.ext.stream import KEY

PATIENCE_S = 60
ROOT = Path(__file__).parents[2]


class HarnessProcess:
    """One life of a harness over a home that outlives it."""

    def __init__(
        self, process: asyncio.subprocess.Process, client: httpx.AsyncClient, ready_s: float, socket: Path
    ) -> None:
        self._process = process
        self._client = client
        self.ready_s = ready_s
        self.socket = socket

    async def crossing(self) -> str:
        """Wait for the next crossing; it is held there."""
        assert self._process.stdout is not None
        async with asyncio.timeout(PATIENCE_S):
            line = await self._process.stdout.readline()
        return line.decode().removeprefix("at ").strip()

    def go(self) -> None:
        """Let the held crossing pass."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"\n")

    async def end(self, number: signal.Signals) -> None:
        """Send it a signal and wait for its end."""
        self._process.send_signal(number)
        async with asyncio.timeout(PATIENCE_S):
            await self._process.wait()

    async def died(self) -> None:
        """Wait until it has died of itself, or of a launcher's trap."""
        async with asyncio.timeout(PATIENCE_S):
            assert await self._process.wait() == -signal.SIGKILL

    async def send(self, message_id: str, text: str, task_id: str | None = None, key: str | None = None) -> str | None:
        """Send without waiting for the turn; the task's id if the message was acknowledged, else `None`."""
        message: dict[str, Any] = {"messageId": message_id, "role": "ROLE_USER", "parts": [{"text": text}]}
        if task_id:
            message["taskId"] = task_id
        if key:
            message["metadata"] = {KEY: {"idempotency_key": key}}
        try:
            answer = await self.rpc("SendMessage", message=message, configuration={"returnImmediately": True})
        except httpx.HTTPError:
            return None
        return answer["result"]["task"]["id"] if "result" in answer else None

    async def rpc(self, method: str, **params: Any) -> dict[str, Any]:
        """Call a method of A2A."""
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        response = await self._client.post("/rpc", json=body, headers={"A2A-Version": "1.0"})
        return response.json() if response.status_code == 200 else {"status": response.status_code}


@asynccontextmanager
async def running(
    home: Path, *words: str, free: bool = True, launcher: str = "tests.e2e.launcher"
) -> AsyncGenerator[HarnessProcess]:
    """Start a harness over a home, with more words for its launcher; kill it at the end if it still lives."""
    started = time.monotonic()
    with (home.parent / "stderr.log").open("ab") as errors:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            launcher,
            str(home),
            *words,
            *(["--free"] if free else []),
            cwd=ROOT,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
        )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(PATIENCE_S):
            line = (await process.stdout.readline()).decode().split()
        assert line[:1] == ["ready"], (home.parent / "stderr.log").read_text()[-2000:]
        transport = httpx.AsyncHTTPTransport(uds=line[1])
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=30) as client:
            yield HarnessProcess(process, client, time.monotonic() - started, Path(line[1]))
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def children_of(home: Path) -> list[int]:
    """List living Temporal servers that were started for a home."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdecimal() and str(home / "temporal.db") in (entry / "cmdline").read_bytes().decode():
                found.append(int(entry.name))
        except (OSError, UnicodeDecodeError):
            continue
    return found


def relatives_of(home: Path) -> list[int]:
    """List living processes that a home's path was given to, on the command line or in the environment."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        try:
            told = (
                (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes() if entry.name.isdecimal() else b""
            )
        except OSError:
            continue
        if os.fsencode(home) in told and int(entry.name) != os.getpid():
            found.append(int(entry.name))
    return found


async def until_gone(home: Path, alive: Callable[[Path], list[int]] = children_of) -> None:
    """Wait until no Temporal server of a home lives, or none of what `alive` lists."""
    async with asyncio.timeout(PATIENCE_S):
        for pid in alive(home):
            try:
                handle = os.pidfd_open(pid)
            except ProcessLookupError:
                continue
            gone = asyncio.Event()
            asyncio.get_running_loop().add_reader(handle, gone.set)
            try:
                await gone.wait()
            finally:
                asyncio.get_running_loop().remove_reader(handle)
                os.close(handle)


class Ledger:
    """What the store and the model's log say in the end."""

    def __init__(self, home: Path) -> None:
        connection = sqlite3.connect(home / "store.db")
        rows = connection.execute("select task_id, seq, payload from events order by task_id, seq").fetchall()
        states = connection.execute("select state from tasks").fetchall()
        connection.close()
        self.states = [state for (state,) in states]
        self.stored: list[str] = []
        self.answered: list[str] = []
        self.numbers: dict[str, list[int]] = {}
        for task_id, seq, payload in rows:
            self.numbers.setdefault(task_id, []).append(seq)
            event = json.loads(payload)
            body = next(iter(event.values()))
            data = body["metadata"][KEY]
            message = body["history"][0] if "task" in event else data.get("received")
            if message:
                self.stored.append(message["messageId"])
            self.answered.extend(data.get("in_reply_to", ()))
        calls = home / CALLS
        self.calls = calls.read_text().splitlines() if calls.exists() else []

    def repeated_steps(self) -> list[str]:
        """Steps of one task that were asked for again after they had been recorded."""
        seen: set[str] = set()
        repeated: list[str] = []
        for line in self.calls:
            what, _, step = line.split(" ", 2)
            if what == "recorded":
                seen.add(step)
            elif step in seen:
                repeated.append(line)
        return repeated
