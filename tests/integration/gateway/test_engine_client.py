"""The way to the engine, on a real Temporal with a real worker: refusals, lost runs, silence."""

import asyncio
import json
import uuid
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import httpx
import pytest
from temporalio.client import Client, WorkflowExecutionStatus, WorkflowHandle
from temporalio.service import RPCError, RPCStatusCode

from tiny_harness import contracts
from tiny_harness.bus import LocalBus
from tiny_harness.contracts import Cancel, Delivery, NewTask, Sender
from tiny_harness.envelope import Action, control_part
from tiny_harness.errors import InvalidInput, TaskEnded, TaskNotFound, Unavailable
from tiny_harness.ids import new_id
from tiny_harness.settings import Settings
from tiny_harness.store import Store, open_store
from tiny_harness_engine.models import ModelReply, ModelRequest
from tiny_harness_engine.worker import open_worker
from tiny_harness_gateway import engine_client
from tiny_harness_gateway.app import create_app
from tiny_harness_gateway.engine_client import TemporalEngineClient

pytestmark = pytest.mark.timeout(60)


class Echo:
    """A model that answers at once."""

    async def reply(self, request: ModelRequest, on_text: Callable[[str], None]) -> ModelReply:
        return ModelReply(f"re: {request.messages[-1].text}")

    async def close(self) -> None:
        return None


@dataclass
class Neighbours:
    """What a gateway has around it."""

    settings: Settings
    store: Store
    bus: LocalBus
    temporal: Client

    @property
    def client(self) -> TemporalEngineClient:
        return TemporalEngineClient(self.temporal, self.settings.temporal.task_queue)

    @asynccontextmanager
    async def working(self) -> AsyncGenerator[None]:
        """Run an engine while the block runs."""

        @asynccontextmanager
        async def provider(_settings: Settings) -> AsyncGenerator[Echo]:
            yield Echo()

        async with open_worker(
            self.settings, store=self.store, bus=self.bus, temporal=self.temporal, provider=provider
        ):
            yield

    async def lose_run(self, task_id: str) -> None:
        """Take the task's run away, as a lost Temporal database would."""
        handle = self.temporal.get_workflow_handle(contracts.workflow_id(task_id))
        await handle.terminate("lost by a test")

    async def until(self, task_id: str, word: str) -> None:
        """Wait until the task is in a state."""
        async with asyncio.timeout(30), self.bus.open_reader() as reader:
            await reader.watch(task_id)
            frames = reader.frames()
            while (record := await self.store.task(task_id)) is None or record.snapshot.state.word != word:
                await anext(frames)


@pytest.fixture
async def around(settings: Settings, temporal: Client) -> AsyncGenerator[Neighbours]:
    queue = {**settings.temporal.model_dump(), "task_queue": f"q-{uuid.uuid4().hex}"}
    settings = Settings.model_validate({**settings.model_dump(), "temporal": queue})
    async with open_store(settings) as store:
        yield Neighbours(settings, store, LocalBus(), temporal)


def delivery(text: str, message_id: str, *, new: bool = False, sender: str = "ann") -> Delivery:
    message = {"messageId": message_id, "role": "ROLE_USER", "parts": [{"text": text}]}
    new_task = NewTask(context_id="c") if new else None
    return Delivery(sender=Sender(id=sender), message=json.dumps(message), new_task=new_task)


def control(action: Action, message_id: str) -> Delivery:
    """A control as a first message, which no task takes."""
    message = {"messageId": message_id, "role": "ROLE_USER", "parts": [control_part(action)]}
    return Delivery(sender=Sender(id="ann"), message=json.dumps(message), new_task=NewTask(context_id="c"))


async def test_a_first_message_starts_a_run_and_others_find_it(around: Neighbours) -> None:
    task_id = new_id()
    async with around.working():
        first = await around.client.deliver(task_id, delivery("hello", "m1", new=True))
        assert (first.seq, first.received_as) == (1, "turn")
        await around.until(task_id, "INPUT_REQUIRED")
        assert (await around.client.deliver(task_id, delivery("more", "m2"))).seq == 3
        await around.until(task_id, "INPUT_REQUIRED")
        assert (await around.client.deliver(task_id, delivery("hello", "m1", new=True))).seq == 1


async def test_an_open_task_whose_run_was_lost_goes_on(around: Neighbours) -> None:
    task_id = new_id()
    async with around.working():
        await around.client.deliver(task_id, delivery("hello", "m1", new=True))
        await around.until(task_id, "INPUT_REQUIRED")
        await around.lose_run(task_id)
        assert (await around.client.deliver(task_id, delivery("more", "m2"))).seq == 3
        await around.until(task_id, "INPUT_REQUIRED")
        await around.lose_run(task_id)
        assert (await around.client.deliver(task_id, delivery("more", "m2"))).seq == 3


async def test_a_cancel_ends_a_task_whose_run_was_lost(around: Neighbours) -> None:
    task_id = new_id()
    async with around.working():
        await around.client.deliver(task_id, delivery("hello", "m1", new=True))
        await around.until(task_id, "INPUT_REQUIRED")
        await around.lose_run(task_id)
        await around.client.cancel(task_id, Cancel(requested_by="ann"))
        await around.until(task_id, "CANCELED")


async def test_what_the_task_refuses_comes_back_as_our_error(around: Neighbours) -> None:
    task_id = new_id()
    async with around.working():
        with pytest.raises(TaskNotFound):
            await around.client.deliver(task_id, control("complete", "m0"))
        handle = around.temporal.get_workflow_handle(contracts.workflow_id(task_id))
        async with asyncio.timeout(20):
            await handle.result()  # a run whose first message was refused ends; the id may be used again
        assert (await around.client.deliver(task_id, delivery("hello", "m1", new=True))).seq == 1
        with pytest.raises(TaskNotFound):
            await around.client.deliver(task_id, delivery("psst", "m2", sender="eve"))
        with pytest.raises(InvalidInput) as reused:
            await around.client.deliver(task_id, delivery("other words", "m1"))
        assert reused.value.kind == "reused_message_id"


async def test_a_late_message_to_an_ended_task_starts_nothing(around: Neighbours) -> None:
    task_id = new_id()
    async with around.working():
        await around.client.deliver(task_id, delivery("hello", "m1", new=True))
        await around.client.cancel(task_id, Cancel(requested_by="ann"))
        await around.until(task_id, "CANCELED")
        with pytest.raises(TaskEnded):
            await around.client.deliver(task_id, delivery("late", "m2"))
        handle = around.temporal.get_workflow_handle(contracts.workflow_id(task_id))
        async with asyncio.timeout(20):
            await handle.result()
        assert (await handle.describe()).status is WorkflowExecutionStatus.COMPLETED


async def test_without_an_engine_the_caller_is_told_to_come_back_and_the_message_is_not_lost(
    around: Neighbours, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_client, "DEADLINE", timedelta(seconds=1))
    task_id = new_id()
    with pytest.raises(Unavailable):
        await around.client.deliver(task_id, delivery("hello", "m1", new=True))
    async with around.working():
        await around.until(task_id, "INPUT_REQUIRED")
        again = await around.client.deliver(task_id, delivery("hello", "m1", new=True))
        assert again.seq == 1


async def test_the_whole_gateway_on_the_real_engine(around: Neighbours) -> None:
    app = create_app(around.settings, store=around.store, bus=around.bus, temporal=around.temporal, token="t")
    transport = httpx.ASGITransport(app)
    headers = {"Authorization": "Bearer t", "A2A-Version": "1.0"}
    async with (
        around.working(),
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://localhost", headers=headers, timeout=30) as http,
    ):
        assert (await http.get("/readyz")).json() == {"store": True, "temporal": True, "bus": True}
        message = {"messageId": "m1", "parts": [{"text": "hello"}]}
        sent = (await http.post("/rest/message:send", json={"message": message})).json()["task"]
        assert [one["parts"][0]["text"] for one in sent["history"]] == ["hello", "re: hello"]
        ended = (await http.post(f"/rest/tasks/{sent['id']}:cancel")).json()
        assert ended["status"]["state"] == "TASK_STATE_CANCELED"


async def test_an_update_that_met_a_closing_run_is_sent_again(
    around: Neighbours, monkeypatch: pytest.MonkeyPatch
) -> None:
    task_id, client = new_id(), around.client
    send = WorkflowHandle.execute_update
    refused: list[str] = []

    async def closing_once(handle: Any, *arguments: Any, **options: Any) -> Any:
        if not refused:
            refused.append(options["id"])
            raise RPCError("workflow task failure", RPCStatusCode.FAILED_PRECONDITION, b"")
        return await send(handle, *arguments, **options)

    async with around.working():
        await client.deliver(task_id, delivery("hello", "m1", new=True))
        await around.until(task_id, "INPUT_REQUIRED")
        monkeypatch.setattr(WorkflowHandle, "execute_update", closing_once)
        receipt = await client.deliver(task_id, delivery("more", "m2"))
    assert len(refused) == 1
    assert receipt.received_as == "turn"
