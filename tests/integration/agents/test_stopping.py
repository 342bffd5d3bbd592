"""Cancelling a parent takes its remote sub-tasks along, within five seconds."""

import asyncio
import logging

import pytest

from tests.integration.agents.conftest import Hire, until_row_is
from tests.integration.agents.site import answering, hanging, losing, on, serving_agent, until
from tests.integration.engine.conftest import PATIENCE_S, Task
from tiny_harness import contracts
from tiny_harness.contracts import remote_workflow_id


async def stand_in_of(task: Task) -> str:
    """Wait for the end of the stand-in of a task's first sub-task."""
    child = (await task.snapshot()).children[0]
    handle = task.engine.temporal.get_workflow_handle(remote_workflow_id(task.id, child.task_id), result_type=str)
    async with asyncio.timeout(PATIENCE_S):
        return await handle.result()


async def test_a_cancel_reaches_an_agent_that_works(hire: Hire) -> None:
    async with serving_agent() as site:
        office = await hire(site)
        task = await office.begin("delegate desk count the stars")
        await until_row_is(task, "WORKING")
        await task.cancel()
        await task.until_state("CANCELED")
        assert await stand_in_of(task) == "TASK_STATE_CANCELED"
        assert site.desk.cancelled == [(await site.desk.job()).task_id]


async def test_a_cancel_reaches_an_agent_that_waits_for_somebody(hire: Hire) -> None:
    async with serving_agent() as site:
        office = await hire(site)
        task = await office.begin("delegate desk count the stars")
        await (await site.desk.job()).asks("which sky?")
        await until_row_is(task, "INPUT_REQUIRED")
        await task.cancel()
        assert await stand_in_of(task) == "TASK_STATE_CANCELED"


async def test_a_cancel_finds_the_task_of_a_brief_that_was_never_answered(hire: Hire) -> None:
    async with serving_agent() as site:
        office = await hire(site)
        site.meddle = lambda operation, before: (
            losing(site.agent)
            if operation == "SendMessage"
            else answering(503)
            if operation == "ListTasks" and before < 1
            else None
        )
        task = await office.begin("delegate desk count the stars")
        job = await site.desk.job()
        await site.until_called("ListTasks")
        await task.cancel()
        assert await stand_in_of(task) == "TASK_STATE_CANCELED"
        assert site.desk.cancelled == [job.task_id]


async def test_an_agent_that_does_not_stop_is_listed_and_cancelled_later(
    hire: Hire, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    async with serving_agent() as site:
        office = await hire(site, desk={"timeout": 1.0})
        task = await office.begin("delegate desk count the stars")
        child = await until_row_is(task, "WORKING")
        site.meddle = on("CancelTask", then=hanging)
        await task.cancel()

        async def is_listed() -> bool:
            return any("not stopped yet" in line and child.task_id in line for line in caplog.messages)

        await until(is_listed)
        site.meddle = lambda _operation, _before: None
        assert await stand_in_of(task) == "TASK_STATE_CANCELED"
        assert site.desk.cancelled == [(await site.desk.job()).task_id]


async def test_a_stand_in_whose_parent_ended_unseen_cancels_its_task(hire: Hire) -> None:
    """As after a forced end: nobody told the stand-in to stop."""
    async with serving_agent(streaming=False) as site:
        office = await hire(site)
        task = await office.begin("delegate desk count the stars")
        await until_row_is(task, "WORKING")
        handle = office.engine.temporal.get_workflow_handle(contracts.workflow_id(task.id))
        await handle.terminate("gone")
        await office.engine.store.request_cancel(task.id, "ann")
        await office.end_in_store(task)
        assert await stand_in_of(task) == "TASK_STATE_CANCELED"
        assert site.desk.cancelled == [(await site.desk.job()).task_id]
