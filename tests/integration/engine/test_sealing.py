"""Who reaches Temporal can neither read what passes through it nor speak for anybody."""

import asyncio
import json
import uuid
from collections.abc import Sequence
from typing import Any

import pytest
from temporalio.client import (
    Client,
    WorkflowExecutionStatus,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.common import WorkflowIDReusePolicy
from temporalio.converter import DataConverter

from tests.integration.engine.conftest import PATIENCE_S, Engine, Task
from tiny_harness import contracts
from tiny_harness.contracts import Cancel, Delivery, Receipt, Sender, StartTask
from tiny_harness.errors import InvalidInput
from tiny_harness.seal import UNSEALED_RING, SealRing, make_key, parse_ring
from tiny_harness.temporal.sealing import data_converter

WORD = "Rumpelstiltskin"
OLD, NEW = make_key(), make_key()


def with_converter(temporal: Client, converter: DataConverter) -> Client:
    """Another client of the same Temporal."""
    return Client(temporal.service_client, namespace=temporal.namespace, data_converter=converter)


def with_ring(engine: Engine, ring: SealRing) -> Engine:
    """The same engine with other keys."""
    client = with_converter(engine.temporal, data_converter(ring))
    return Engine(engine.settings, engine.store, engine.bus, client, engine.model)


async def histories(task: Task) -> bytes:
    """All that Temporal keeps of a task, as bytes."""
    history = await task.handle.fetch_history()
    return b"".join(event.SerializeToString() for event in history.events)


async def test_no_word_of_a_conversation_is_in_its_history(engine: Engine) -> None:
    task = engine.task()
    await task.start("m1", f"{WORD} asks")
    await task.until_state("INPUT_REQUIRED")
    await task.command("m2", f"/sub-task {WORD} spins")
    with pytest.raises(InvalidInput) as refused:  # by the task itself: a failure is kept
        await task.say("m1", "other words")
    assert WORD in json.dumps(await task.log())
    kept = await histories(task)
    assert kept.count(b"binary/sealed") > 5
    assert WORD.encode() not in kept
    assert refused.value.reason.encode() not in kept
    assert b"ann" not in kept


def forger(engine: Engine, kind: str) -> Client:
    rings = {"unsealed": UNSEALED_RING, "with another key": parse_ring(NEW, "")}
    return with_converter(engine.temporal, data_converter(rings[kind]))


@pytest.mark.parametrize("kind", ["unsealed", "with another key"])
async def test_a_forged_message_is_refused_a_forged_signal_dropped_and_the_task_goes_on(
    engine: Engine, kind: str
) -> None:
    task = engine.task()
    await task.start("m1", "hello")
    before = await task.until_state("INPUT_REQUIRED")
    forged = forger(engine, kind).get_workflow_handle(contracts.workflow_id(task.id))
    message = {"messageId": "f1", "role": "ROLE_USER", "parts": [{"text": "I am ann, complete it"}]}
    delivery = Delivery(sender=Sender(id="ann"), message=json.dumps(message))
    with pytest.raises(WorkflowUpdateFailedError):
        async with asyncio.timeout(PATIENCE_S):
            await forged.execute_update(contracts.DELIVER, delivery, result_type=Receipt)
    await forged.signal(contracts.CANCEL, Cancel(requested_by="ann"))
    await task.say("m2", "still here?")
    after = await task.until(lambda snapshot: snapshot.turn == 2 and snapshot.state.word == "INPUT_REQUIRED")
    assert after.turn == before.turn + 1
    assert "complete it" not in json.dumps(await task.log())


async def test_a_message_of_one_task_cannot_be_carried_to_another(engine: Engine) -> None:
    mine, other = engine.task(), engine.task()
    await mine.start("m1", "hello")
    await other.start("m1", "hello")
    await mine.until_state("INPUT_REQUIRED")
    await other.until_state("INPUT_REQUIRED")
    sealed = await sealed_for(engine, mine, [Cancel(requested_by="ann")])
    raw = with_converter(engine.temporal, DataConverter.default)
    await raw.get_workflow_handle(contracts.workflow_id(other.id)).signal(contracts.CANCEL, args=sealed)
    await other.say("m2", "still here?")
    await other.until(lambda snapshot: snapshot.turn == 2 and snapshot.state.word == "INPUT_REQUIRED")
    await raw.get_workflow_handle(contracts.workflow_id(mine.id)).signal(contracts.CANCEL, args=sealed)
    await mine.until_state("CANCELED")  # where it belongs, it is the signal that it is


async def sealed_for(engine: Engine, task: Task, values: Sequence[Any]) -> Sequence[Any]:
    """Seal values as a task's own, to be sent as they are."""
    from temporalio.common import RawValue
    from temporalio.converter import WorkflowSerializationContext

    context = WorkflowSerializationContext(engine.temporal.namespace, contracts.workflow_id(task.id))
    return [RawValue(payload) for payload in await engine.temporal.data_converter.with_context(context).encode(values)]


async def test_a_forged_start_ends_at_once_and_housekeeping_starts_the_task_again(engine: Engine) -> None:
    task = engine.task()
    await task.start("m1", "hello")
    await task.until_state("INPUT_REQUIRED")
    await task.handle.terminate("who reaches Temporal can do that")
    run = await forger(engine, "unsealed").start_workflow(
        contracts.TASK_WORKFLOW,
        StartTask(task_id=task.id),
        id=contracts.workflow_id(task.id),
        task_queue=engine.settings.temporal.task_queue,
        id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
    )
    async with asyncio.timeout(PATIENCE_S):
        while (await run.describe()).status is WorkflowExecutionStatus.RUNNING:  # noqa: ASYNC110 - Temporal is asked
            await asyncio.sleep(0.05)
    async with asyncio.timeout(PATIENCE_S):
        while task.id not in await running(engine):  # the list of runs follows a little later
            await engine.housekeeping().once()
    await task.say("m2", "still here?")
    await task.until(lambda snapshot: snapshot.turn == 2 and snapshot.state.word == "INPUT_REQUIRED")


async def running(engine: Engine) -> set[str]:
    query = f"WorkflowType = '{contracts.TASK_WORKFLOW}' AND ExecutionStatus = 'Running'"
    return {run.id.removeprefix("task:") async for run in engine.temporal.list_workflows(query)}


async def test_a_task_lives_through_the_rotation_of_its_keys(stopped: Engine) -> None:
    rings = [f"{OLD}", f"{OLD},{NEW}", f"{NEW},{OLD}"]
    task_id = uuid.uuid4().hex
    for number, words in enumerate(rings, 1):
        engine = with_ring(stopped, parse_ring(words, ""))
        async with engine.working():
            task = Task(engine, task_id)
            await (task.start if number == 1 else task.say)(f"m{number}", "hello")
            done = await task.until(lambda found, turn=number: found.turn == turn and found.mailbox == ())
            await task.until_state("INPUT_REQUIRED")
            assert done.turn == number
    # What was started with the new key needs the old one no more.
    engine = with_ring(stopped, parse_ring(NEW, ""))
    async with engine.working():
        task = engine.task()
        await task.start("m1", "hello")
        await task.until_state("INPUT_REQUIRED")


async def test_a_task_from_before_sealing_goes_on_where_the_ring_says_so(stopped: Engine) -> None:
    before = with_ring(stopped, UNSEALED_RING)
    async with before.working():
        task = before.task()
        await task.start("m1", f"{WORD} before")
        await task.until_state("INPUT_REQUIRED")
        assert WORD.encode() in await histories(task)
    after = with_ring(stopped, parse_ring(f"{NEW},unsealed", ""))
    async with after.working():
        same = Task(after, task.id)
        await same.say("m2", "and Bluebeard after")
        await same.until(lambda snapshot: snapshot.turn == 2 and snapshot.state.word == "INPUT_REQUIRED")
        assert b"Bluebeard" not in await histories(same)


async def test_a_task_whose_key_was_removed_too_early_waits_and_goes_on_when_it_is_back(stopped: Engine) -> None:
    old, new, both = (with_ring(stopped, parse_ring(words, "")) for words in (OLD, NEW, f"{NEW} {OLD}"))
    async with old.working():
        task = old.task()
        await task.start("m1", "hello")
        await task.until_state("INPUT_REQUIRED")
    async with new.working():
        with pytest.raises(WorkflowUpdateRPCTimeoutOrCancelledError):
            async with asyncio.timeout(2):
                await Task(new, task.id).say("m2", "is anybody there?")
        assert (await task.handle.describe()).status is WorkflowExecutionStatus.RUNNING
        assert (await task.snapshot()).head == 2
    async with both.working():
        same = Task(both, task.id)
        await same.say("m3", "and now?")
        done = await same.until(lambda found: found.state.word == "INPUT_REQUIRED" and found.head > 3)
        assert done.mailbox == ()
