"""A real engine on a real Temporal and a real store, with a model that the test holds in its hands."""

import asyncio
import json
import uuid
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from temporalio.client import Client, WithStartWorkflowOperation, WorkflowUpdateFailedError
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import ApplicationError

from tiny_harness import contracts
from tiny_harness.bus import LocalBus
from tiny_harness.contracts import Cancel, Delivery, NewTask, Receipt, Sender, StartTask, TaskSnapshot
from tiny_harness.envelope import Action, control_part
from tiny_harness.errors import HarnessError, unpack
from tiny_harness.ext import commands, stream
from tiny_harness.ext.task import Lifecycle
from tiny_harness.settings import Settings
from tiny_harness.store import Store, open_store
from tiny_harness_engine.activities.committer import Committer
from tiny_harness_engine.agents.stand_ins import StandIns
from tiny_harness_engine.housekeeping import Housekeeping
from tiny_harness_engine.models import ModelReply, ModelRequest
from tiny_harness_engine.runs import Runs
from tiny_harness_engine.supervisors import Supervisors
from tiny_harness_engine.worker import open_worker

PATIENCE_S = 30


class HeldModel:
    """Answers `re: <text>`; holds or fails when told to, and counts."""

    def __init__(self) -> None:
        self.requests: list[ModelRequest] = []
        self.cancelled = 0
        self.failures: list[HarnessError] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.asked = asyncio.Event()

    async def reply(self, request: ModelRequest, on_text: Callable[[str], None]) -> ModelReply:
        self.requests.append(request)
        self.asked.set()
        if self.failures:
            raise self.failures.pop(0)
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        text = "re: " + " + ".join(m.text for m in request.messages[-1:])
        on_text(text)
        return ModelReply(text)

    def hold(self) -> None:
        self.gate.clear()
        self.asked.clear()

    async def until_asked(self) -> None:
        async with asyncio.timeout(PATIENCE_S):
            await self.asked.wait()

    async def close(self) -> None:
        return None


class Task:
    """One task, driven as the gateway drives it."""

    def __init__(self, engine: "Engine", task_id: str) -> None:
        self.engine = engine
        self.id = task_id
        self.handle = engine.temporal.get_workflow_handle(contracts.workflow_id(task_id))

    def _delivery(self, message_id: str, parts: list[dict[str, Any]], sender: str, new: NewTask | None) -> Delivery:
        message = {"messageId": message_id, "role": "ROLE_USER", "parts": parts}
        return Delivery(sender=Sender(id=sender), message=json.dumps(message), new_task=new)

    async def start(
        self, message_id: str, text: str, lifecycle: Lifecycle = "conversation", worker: str | None = None
    ) -> Receipt:
        new = NewTask(context_id="c", lifecycle=lifecycle, worker=worker)
        delivery = self._delivery(message_id, [{"text": text}], "ann", new)
        operation: WithStartWorkflowOperation[Any, Any] = WithStartWorkflowOperation(
            contracts.TASK_WORKFLOW,
            StartTask(task_id=self.id, first=delivery),
            id=contracts.workflow_id(self.id),
            task_queue=self.engine.settings.temporal.task_queue,
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
        )
        update_id = uuid.uuid4().hex
        return await _answer(
            self.engine.temporal.execute_update_with_start_workflow(
                contracts.DELIVER, delivery, start_workflow_operation=operation, id=update_id, result_type=Receipt
            )
        )

    async def parts(self, message_id: str, *parts: dict[str, Any], sender: str = "ann") -> Receipt:
        message = {"messageId": message_id, "role": "ROLE_USER", "parts": list(parts)}
        return await self.deliver(message, sender)

    async def deliver(self, message: dict[str, Any], sender: str = "ann") -> Receipt:
        """Send a whole message."""
        delivery = Delivery(sender=Sender(id=sender), message=json.dumps(message))
        update_id = uuid.uuid4().hex
        return await _answer(self.handle.execute_update(contracts.DELIVER, delivery, id=update_id, result_type=Receipt))

    async def say(self, message_id: str, text: str, sender: str = "ann") -> Receipt:
        return await self.parts(message_id, {"text": text}, sender=sender)

    async def control(self, message_id: str, action: Action) -> Receipt:
        return await self.parts(message_id, control_part(action))

    async def cancel(self) -> None:
        await self.handle.signal(contracts.CANCEL, Cancel(requested_by="ann"))

    async def snapshot(self) -> TaskSnapshot:
        record = await self.engine.store.task(self.id)
        assert record is not None
        return record.snapshot

    async def until(self, condition: Callable[[TaskSnapshot], bool]) -> TaskSnapshot:
        """Wait until the store's snapshot is as wanted: told by the bus, bounded in time."""
        async with asyncio.timeout(PATIENCE_S), self.engine.bus.open_reader() as reader:
            await reader.watch(self.id)
            frames = reader.frames()
            while True:
                record = await self.engine.store.task(self.id)
                if record is not None and condition(record.snapshot):
                    return record.snapshot
                await anext(frames)

    async def until_state(self, word: str) -> TaskSnapshot:
        return await self.until(lambda snapshot: snapshot.state.word == word)

    async def log(self) -> list[dict[str, Any]]:
        return [json.loads(event.payload) for event in await self.engine.store.events(self.id, 0, 10_000)]

    async def command(self, message_id: str, text: str, sender: str = "ann") -> "Answer":
        """Send a command, and wait for its reply."""
        await self.say(message_id, text, sender)
        return await self.answer_to(message_id)

    async def answer_to(self, message_id: str) -> "Answer":
        """Wait for the reply to a command."""
        found: list[Answer] = []

        async def look() -> bool:
            found[:] = [answer for event in await self.log() if (answer := _answer_in(event, message_id))]
            return bool(found)

        async with asyncio.timeout(PATIENCE_S), self.engine.bus.open_reader() as reader:
            await reader.watch(self.id)
            frames = reader.frames()
            while not await look():
                await anext(frames)
        return found[0]

    async def replies(self) -> list[str]:
        messages = [event.get("statusUpdate", {}).get("status", {}).get("message") for event in await self.log()]
        return [message["parts"][0]["text"] for message in messages if message]


@dataclass(frozen=True)
class Answer:
    """A command's reply."""

    name: str
    outcome: str
    text: str
    data: dict[str, Any] | None
    state: str


def _answer_in(event: dict[str, Any], message_id: str) -> Answer | None:
    update = event.get("statusUpdate", {})
    metadata = update.get("metadata", {})
    tag = metadata.get(commands.KEY)
    if tag is None or message_id not in metadata[stream.KEY].get("in_reply_to", ()):
        return None
    parts = update["status"]["message"]["parts"]
    data = parts[1]["data"] if len(parts) > 1 else None
    return Answer(tag["name"], tag["outcome"], parts[0]["text"], data, update["status"]["state"])


class Engine:
    """What a test needs of a running engine."""

    def __init__(self, settings: Settings, store: Store, bus: LocalBus, temporal: Client, model: HeldModel) -> None:
        self.settings = settings
        self.store = store
        self.bus = bus
        self.temporal = temporal
        self.model = model

    def runs(self) -> Runs:
        return Runs(self.temporal, self.settings.temporal.task_queue)

    def housekeeping(self) -> "PatientHousekeeping":
        runs = self.runs()
        stand_ins = StandIns(self.store, self.temporal, self.settings.temporal.task_queue)
        return PatientHousekeeping(
            Committer(self.store, self.bus, runs, stand_ins, Supervisors(self.settings, self.temporal)),
            self.temporal,
            runs,
        )

    def task(self) -> Task:
        return Task(self, uuid.uuid4().hex)

    @asynccontextmanager
    async def working(self, **more: Any) -> AsyncGenerator["Engine"]:
        """Run a worker while the block runs; `more` are arguments of `open_worker`."""

        @asynccontextmanager
        async def provider(_settings: Settings) -> AsyncGenerator[HeldModel]:
            yield self.model

        options = {"store": self.store, "bus": self.bus, "temporal": self.temporal}
        async with open_worker(self.settings, **options, provider=provider, **more):
            yield self


class PatientHousekeeping(Housekeeping):
    """Makes its pass after that of the engine's own, which begins as the engine starts."""

    async def once(self) -> bool:
        async with asyncio.timeout(PATIENCE_S):
            while not await super().once():  # noqa: ASYNC110 - a lock of another pass sets no event
                await asyncio.sleep(0.05)  # the other's pass goes on meanwhile
        return True


async def _answer(call: Any) -> Receipt:
    """Await an update; its failure comes back as our error."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            return await call
    except WorkflowUpdateFailedError as failed:
        cause = failed.cause
        assert isinstance(cause, ApplicationError)
        raise unpack(cause.type or "", cause.details[0]) from failed


@pytest.fixture
async def stopped(settings: Settings, temporal: Client) -> AsyncGenerator[Engine]:
    """An engine whose worker is not running yet, on a task queue of its own."""
    own = {**settings.temporal.model_dump(), "task_queue": f"q-{uuid.uuid4().hex}"}
    settings = Settings.model_validate({**settings.model_dump(), "temporal": own})
    async with open_store(settings) as store:
        yield Engine(settings, store, LocalBus(), temporal, HeldModel())


@pytest.fixture
async def engine(stopped: Engine) -> AsyncGenerator[Engine]:
    """A running engine."""
    async with stopped.working():
        yield stopped
