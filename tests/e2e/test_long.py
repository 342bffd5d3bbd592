"""A long conversation stays one task, and as fast at its end as near its start."""

import os
import re
import statistics
import time
from pathlib import Path

import pytest
from temporalio.client import Client

from tests.e2e.process import HarnessProcess, Ledger, children_of, running
from tiny_harness.contracts import workflow_id

IS_SOAK = bool(os.environ.get("TINY_HARNESS_SOAK"))
TURNS = 5_000 if IS_SOAK else 500
MAX_EVENTS = 260
"""Of one run: rolled over at 200, and what one more turn adds."""


async def talk(harness: HarnessProcess, turns: int) -> tuple[str, list[float]]:
    """Hold a conversation; answers its task and how long each turn took, in seconds."""
    task_id, took = "", []
    for turn in range(turns):
        message = {"messageId": f"m{turn}", "role": "ROLE_USER", "parts": [{"text": f"turn {turn}"}], "taskId": task_id}
        started = time.perf_counter()
        answer = await harness.rpc("SendMessage", message=message, configuration={"historyLength": 1})
        took.append(time.perf_counter() - started)
        task = answer["result"]["task"]
        assert task["status"]["message"]["parts"][0]["text"] == f"re: turn {turn}"
        task_id = task["id"]
    return task_id, took


async def open_client(home: Path) -> Client:
    [pid] = children_of(home)
    command = Path(f"/proc/{pid}/cmdline").read_bytes().decode().replace("\0", " ")  # noqa: ASYNC240 - not a disk
    found = re.search(r"--port (\d+)", command)
    assert found
    return await Client.connect(f"127.0.0.1:{found[1]}")


@pytest.mark.timeout(3600 if IS_SOAK else 300)
async def test_a_long_conversation_keeps_its_pace_and_a_short_history(tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with running(home) as harness:
        task_id, took = await talk(harness, TURNS)
        client = await open_client(home)
        run = await client.get_workflow_handle(workflow_id(task_id)).describe()
        early, late = statistics.median(took[200:400]), statistics.median(took[-200:])
        print(
            f"\n{TURNS} turns: turns 200-400 {early * 1e3:.1f} ms, last 200 {late * 1e3:.1f} ms, {late / early:.2f} x"
        )
        assert run.history_length <= MAX_EVENTS
        assert late <= 1.3 * early
    ledger = Ledger(home)
    assert ledger.answered == [f"m{turn}" for turn in range(TURNS)]
    assert ledger.numbers == {task_id: list(range(1, 2 * TURNS + 1))}
