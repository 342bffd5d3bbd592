"""`python -m tests.replay.record`: runs every kind of workflow once, and keeps their histories as they are today.

Run it when a workflow changes on purpose, under a patch: files of earlier versions stay, for their runs may be open.
They are plain JSON, sealed by nothing, and hold nobody's words but the demo's.
"""

import asyncio
import json
import os
import shutil
import sys
import tempfile
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from temporalio.client import Client, WorkflowHistory

from tests.ports import free_port
from tiny_harness import connect, running_harness
from tiny_harness._version import __version__
from tiny_harness.client import HarnessClient, TaskView
from tiny_harness.demo import PLUGIN
from tiny_harness.push import VARIABLE as PUSH_VARIABLE
from tiny_harness.seal import UNSEALED_RING, make_key
from tiny_harness.seal import VARIABLE as SEAL_VARIABLE
from tiny_harness.settings import Settings
from tiny_harness.states import AWAITING_APPROVAL, TaskState
from tiny_harness.temporal.embedded import find_binary
from tiny_harness.temporal.sealing import data_converter

HISTORIES: Final = Path(__file__).with_name("histories")
PATIENCE_S: Final = 60


async def story(client: HarnessClient) -> None:
    """Talk, commands, a sub-task, a question, an approval, the end."""
    task_id = (await client.send("Hello!")).task.task_id
    await client.send("/status", task_id=task_id)
    child = await client.send("/sub-task look at the order", task_id=task_id)
    found = await client.task(child.task.task_id)
    await client.send("What do you see?", task_id=found.sub_tasks[0].task_id)
    await client.complete(found.sub_tasks[0].task_id)
    await client.send("My kettle arrived broken. It is order A-17.", task_id=task_id)
    await until(client, task_id, lambda task: all(child.state == TaskState.COMPLETED for child in task.sub_tasks))
    await client.send("card", task_id=task_id)
    await until(client, task_id, lambda task: task.sub_state == AWAITING_APPROVAL)
    question = (await client.task(task_id)).question
    assert question is not None
    await client.answer(task_id, question.request_id or "", "approve")
    await client.complete(task_id)


async def ends(client: HarnessClient) -> None:
    """A cancel, and a task that stays open."""
    await client.cancel((await client.send("Hello!")).task.task_id)
    await client.send("Hello!")


async def supervised(client: HarnessClient) -> None:
    """Two tasks of a worker: one is done, one waits for an answer."""
    first = await client.give("paint the fence", "ann")
    second = await client.give("paint the door", "ann")
    await until(client, first.task_id, works)
    await client.update(first.task_id, "running", "at it", minutes=5)
    await client.update(first.task_id, "done", "It is green.")
    await until(client, second.task_id, works)
    await client.update(second.task_id, "blocked", "Which colour?")


def works(task: TaskView) -> bool:
    return task.state is TaskState.WORKING


async def until(client: HarnessClient, task_id: str, holds: Callable[[TaskView], bool]) -> None:
    """Follow a task until it is as wanted."""
    async with asyncio.timeout(PATIENCE_S):
        async for _ in client.follow(task_id):
            if holds(await client.task(task_id, 0)):
                return


SCENARIOS: Final = {"story": story, "ends": ends, "supervised": supervised}


async def main() -> None:
    """Record all scenarios."""
    os.environ.pop(SEAL_VARIABLE, None)
    os.environ[PUSH_VARIABLE] = make_key()
    HISTORIES.mkdir(exist_ok=True)
    for name, play in SCENARIOS.items():
        with tempfile.TemporaryDirectory(prefix="th-") as folder:
            async with temporal_in(Path(folder)) as address:
                await record(name, play, Path(folder), address)


@asynccontextmanager
async def temporal_in(folder: Path) -> AsyncGenerator[str]:
    """Run a Temporal server of its own."""
    address = f"127.0.0.1:{free_port()}"
    words = ["server", "start-dev", "--headless", "--ip", "127.0.0.1", "--log-level", "never"]
    ports = ["--port", address.rpartition(":")[2], "--metrics-port", str(free_port())]
    process = await asyncio.create_subprocess_exec(find_binary(), *words, *ports, cwd=folder)
    try:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                try:
                    await Client.connect(address)
                    break
                except RuntimeError:
                    await asyncio.sleep(0.1)
        yield address
    finally:
        process.kill()
        await process.wait()


async def record(name: str, play: Any, folder: Path, address: str) -> None:
    """Play a scenario on a harness without seals, and keep the histories of all that ran for it."""
    shutil.copytree(PLUGIN, folder / "plugin")
    settings = Settings.model_validate(
        {
            "temporal": {"mode": "remote", "address": address},
            "store": {"sqlite_path": folder / "store.db"},
            "model": {"provider": "scripted"},
            "server": {"participant": "ann"},
            "plugins": [folder / "plugin"],
        }
    )
    async with running_harness(settings) as harness, connect(harness.address, "ann") as client:
        await play(client)
        temporal = await Client.connect(address, data_converter=data_converter(UNSEALED_RING))
        counts: dict[str, int] = {}
        async for run in temporal.list_workflows():
            kind = run.workflow_type
            counts[kind] = counts.get(kind, 0) + 1
            history = await temporal.get_workflow_handle(run.id, run_id=run.run_id).fetch_history()
            write(f"{__version__}-{name}-{kind}-{counts[kind]}", history, folder)
    print(name, counts, file=sys.stderr)


def write(name: str, history: WorkflowHistory, folder: Path) -> None:
    """Keep a history, without what tells of this machine."""
    body = {"workflowId": history.workflow_id, **cleaned(history.to_json_dict())}
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":")).replace(str(folder), "/home")
    (HISTORIES / f"{name}.json").write_text(text + "\n")


def cleaned(found: Any) -> Any:
    """Drop identities of processes, anywhere: they name the machine, as do the queues that are one process's own."""
    if isinstance(found, Mapping):
        own = {"name": "sticky"} if found.get("kind") == "TASK_QUEUE_KIND_STICKY" else {}
        return {key: own.get(key, cleaned(value)) for key, value in found.items() if key != "identity"}
    return [cleaned(value) for value in found] if isinstance(found, list) else found


if __name__ == "__main__":
    asyncio.run(main())
