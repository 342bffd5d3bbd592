"""An engine that may give work to agents, with a model that says what the test wants."""

import json
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

import pytest
from temporalio.client import Client

from tests.integration.agents.site import Site
from tests.integration.engine.conftest import Engine, HeldModel, Task
from tiny_harness.bus import LocalBus
from tiny_harness.contracts import Child, TaskSnapshot
from tiny_harness.settings import Settings
from tiny_harness.states import TaskState
from tiny_harness.store import Commit, NewEvent, open_store
from tiny_harness_engine.agents.stand_ins import StandIns
from tiny_harness_engine.core import lifecycle
from tiny_harness_engine.core.drafts import NewRemote
from tiny_harness_engine.models import ModelReply, ModelRequest, ToolCall
from tiny_harness_engine.runs import Runs


class Delegating(HeldModel):
    """Gives work to an agent when told so, and says what it was told otherwise.

    A participant's `delegate <agent> <goal>` spawns a sub-task; everything else is answered with what was read last.
    """

    async def reply(self, request: ModelRequest, on_text: Callable[[str], None]) -> ModelReply:
        del on_text
        self.requests.append(request)
        last = request.messages[-1]
        if last.role == "user" and last.text.startswith("delegate "):
            goals = [line.split(" ", 2)[1:] for line in last.text.splitlines()]
            calls = [
                ToolCall(f"c{n}", "spawn_subtask", json.dumps({"agent": agent, "goal": goal}))
                for n, (agent, goal) in enumerate(goals)
            ]
            return ModelReply("", calls)
        return ModelReply(f"read: {last.text}")


@dataclass
class Office:
    """A running engine and the tasks that it holds."""

    engine: Engine
    model: Delegating = field(default_factory=Delegating)
    _working: AsyncExitStack = field(default_factory=AsyncExitStack)

    async def start(self) -> None:
        """Start the engine, again."""
        await self._working.enter_async_context(self.engine.working())

    async def stop(self) -> None:
        """Stop the engine."""
        await self._working.aclose()

    async def begin_again(self, task: Task) -> None:
        """Start a task's run as housekeeping does for one that has none."""
        await Runs(self.engine.temporal, self.engine.settings.temporal.task_queue).begin(task.id)

    async def end_in_store(self, task: Task) -> None:
        """End a task as housekeeping does by force, and tell nobody."""
        snapshot = await task.snapshot()
        decision = lifecycle.cancel(snapshot)
        assert decision is not None
        event = NewEvent("state", lambda _seq, _at, _text: "{}")
        await self.engine.store.commit(Commit(task.id, "cancel", snapshot.head, [event], decision.snapshot, ""))

    async def stand_in(self, task: Task, agent: str) -> None:
        """Start a stand-in for a sub-task that its parent will never have."""
        queue = self.engine.settings.temporal.task_queue
        child = Child(task_id="never-written", state=TaskState.SUBMITTED, agent=agent, origin=(9, 9, 9))
        await StandIns(self.engine.store, self.engine.temporal, queue).open(task.id, NewRemote(child=child, goal="go"))

    async def begin(self, words: str) -> Task:
        """Start a conversation; wait for its first turn's end."""
        task = self.engine.task()
        await task.start("m1", words)
        await task.until(lambda snapshot: bool(snapshot.children) or snapshot.state is TaskState.INPUT_REQUIRED)
        return task


Hire = Callable[..., Awaitable[Office]]
"""Start an engine that knows agents: `await hire(site)`, or `await hire(desk={"url": ...})`."""


@pytest.fixture
async def hire(settings: Settings, temporal: Client) -> AsyncGenerator[Hire]:
    async with AsyncExitStack() as stack:

        async def start(site: Site | None = None, **agents: dict[str, Any]) -> Office:
            if site is not None:
                agents["desk"] = {"url": site.url, "timeout": 5.0, **agents.get("desk", {})}
            document = {**settings.model_dump(), "agents": agents}
            document["temporal"]["task_queue"] = f"q-{uuid.uuid4().hex}"
            own = Settings.model_validate(document)
            store = await stack.enter_async_context(open_store(own))
            office = Office(Engine(own, store, LocalBus(), temporal, HeldModel()))
            office.engine.model = office.model
            stack.push_async_callback(office.stop)
            await office.start()
            return office

        yield start


def row(snapshot: TaskSnapshot, number: int = 0) -> Child:
    return snapshot.children[number]


async def until_row(task: Task, is_so: Callable[[Child], bool], number: int = 0) -> Child:
    """Wait until the task's row of a sub-task is as wanted."""
    snapshot = await task.until(lambda found: len(found.children) > number and is_so(found.children[number]))
    return snapshot.children[number]


async def until_row_is(task: Task, word: str, number: int = 0) -> Child:
    return await until_row(task, lambda child: child.state.word == word, number)


def heard(task_log: list[dict[str, Any]]) -> list[str]:
    """Read the notes that a task's model was given, in order."""
    from tiny_harness.ext import stream

    found: list[str] = []
    for event in task_log:
        received = event.get("statusUpdate", {}).get("metadata", {}).get(stream.KEY, {}).get("received")
        if received is not None and received["role"] == "ROLE_AGENT":
            found.append(received["parts"][0]["text"])
    return found
