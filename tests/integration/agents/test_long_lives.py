"""A stand-in of a long life goes on as new runs: nothing is sent again, no change is told twice or left out."""

import asyncio
import uuid

from temporalio import activity
from temporalio.client import Client
from temporalio.worker import Worker

from tests.integration.engine.conftest import PATIENCE_S
from tiny_harness.contracts import REMOTE_WORKFLOW, Child, ChildChanged, remote_workflow_id
from tiny_harness.states import TaskState
from tiny_harness_engine.core.remote import Seen, StandIn
from tiny_harness_engine.remote_calls import REMOTE_LOOK, REMOTE_SEND, REMOTE_TELL, RemoteAnswer, TellRequest
from tiny_harness_engine.workflows.remote import RemoteTaskWorkflow

CHANGES = 40


class Fickle:
    """An agent whose task changes at each look, and a parent that keeps what it is told."""

    def __init__(self) -> None:
        self.sent = 0
        self.looks = 0
        self.told: list[ChildChanged] = []

    @activity.defn(name=REMOTE_SEND)
    async def send(self, stand_in: StandIn) -> RemoteAnswer:
        self.sent += 1
        return RemoteAnswer(seen=Seen(remote_id="r", state=TaskState.WORKING))

    @activity.defn(name=REMOTE_LOOK)
    async def look(self, stand_in: StandIn) -> RemoteAnswer:
        self.looks += 1
        if self.looks == CHANGES:
            return RemoteAnswer(seen=Seen(remote_id="r", state=TaskState.COMPLETED, words="done"))
        state = TaskState.AUTH_REQUIRED if self.looks % 2 else TaskState.WORKING
        return RemoteAnswer(seen=Seen(remote_id="r", state=state))

    @activity.defn(name=REMOTE_TELL)
    async def tell(self, request: TellRequest) -> bool:
        self.told.append(request.change)
        return True


async def test_a_long_life_is_many_short_runs(temporal: Client) -> None:
    fickle, queue = Fickle(), f"q-{uuid.uuid4().hex}"
    child = Child(task_id=uuid.uuid4().hex, state=TaskState.SUBMITTED, agent="desk", origin=(1, 1, 0))
    activities = [fickle.send, fickle.look, fickle.tell]
    async with Worker(temporal, task_queue=queue, workflows=[RemoteTaskWorkflow], activities=activities):
        handle = await temporal.start_workflow(
            REMOTE_WORKFLOW,
            StandIn(parent="p", child=child),
            id=remote_workflow_id("p", child.task_id),
            task_queue=queue,
            result_type=str,
        )
        async with asyncio.timeout(PATIENCE_S):
            assert await handle.result() == TaskState.COMPLETED.value
        last = temporal.get_workflow_handle(handle.id)
        assert (await last.describe()).run_id != handle.first_execution_run_id
        length = len((await last.fetch_history()).events)
    assert length < 300
    assert fickle.sent == 1
    assert [change.seq for change in fickle.told] == list(range(1, CHANGES + 2))
