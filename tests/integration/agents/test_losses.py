"""Nothing is sent twice and nothing is lost, whatever dies in between."""

import asyncio
from typing import Any

from temporalio.worker import Replayer

from tests.integration.agents.conftest import Hire, Office, until_row, until_row_is
from tests.integration.agents.site import on, serving_agent
from tests.integration.agents.test_stand_ins import until_told
from tests.integration.engine.conftest import PATIENCE_S, Task
from tiny_harness import contracts
from tiny_harness.contracts import remote_workflow_id
from tiny_harness_engine.workflows.remote import RemoteTaskWorkflow


def handle_of(office: Office, task: Task, child_id: str) -> Any:
    return office.engine.temporal.get_workflow_handle(remote_workflow_id(task.id, child_id), result_type=str)


async def test_an_engine_that_stops_while_an_agent_works_hears_of_it_when_it_is_back(hire: Hire) -> None:
    async with serving_agent() as site:
        office = await hire(site)
        task = await office.begin("delegate desk count the stars")
        job = await site.desk.job()
        await until_row_is(task, "WORKING")
        await office.stop()
        await job.done(says="seven")
        await office.start()
        await until_told(task, "seven")
        assert site.count("SendMessage") == 1


async def test_an_engine_that_stops_while_it_sends_sends_no_second_time(hire: Hire) -> None:
    async with serving_agent() as site:
        office = await hire(site, desk={"timeout": 60.0})
        reached, go_on = asyncio.Event(), asyncio.Event()

        async def slow(scope: Any, receive: Any, send: Any) -> None:
            async def late(message: Any) -> None:
                reached.set()
                await go_on.wait()
                await send(message)

            await site.agent(scope, receive, late)

        site.meddle = on("SendMessage", slow)
        task = await office.begin("delegate desk count the stars")
        async with asyncio.timeout(PATIENCE_S):
            await reached.wait()
        await office.stop()
        go_on.set()
        await office.start()
        job = await site.desk.job()
        await until_row(task, lambda child: child.remote_id == job.task_id)
        await job.done(says="seven")
        await until_told(task, "seven")
        assert len(site.desk.jobs) == 1


async def test_a_stand_in_that_temporal_lost_is_started_again_and_sends_nothing_twice(hire: Hire) -> None:
    async with serving_agent() as site:
        office = await hire(site)
        task = await office.begin("delegate desk count the stars")
        job = await site.desk.job()
        child = await until_row_is(task, "WORKING")
        await office.stop()
        await handle_of(office, task, child.task_id).terminate("lost")
        await office.engine.temporal.get_workflow_handle(contracts.workflow_id(task.id)).terminate("lost")
        await office.start()
        await office.begin_again(task)
        await job.done(says="seven")
        await until_told(task, "seven")
        assert site.count("SendMessage") == 1


async def test_a_stand_in_lost_before_its_parent_knew_the_remote_id_finds_its_task(hire: Hire) -> None:
    async with serving_agent() as site:
        office = await hire(site)
        gate = asyncio.Event()

        async def held(scope: Any, receive: Any, send: Any) -> None:
            async def late(message: Any) -> None:
                await gate.wait()
                await send(message)

            await site.agent(scope, receive, late)

        site.meddle = on("SendMessage", held)
        task = await office.begin("delegate desk count the stars")
        job = await site.desk.job()
        child = (await task.snapshot()).children[0]
        await handle_of(office, task, child.task_id).terminate("lost")
        await office.stop()
        gate.set()
        await office.engine.temporal.get_workflow_handle(contracts.workflow_id(task.id)).terminate("lost")
        await office.start()
        await office.begin_again(task)
        await until_row(task, lambda found: found.remote_id == job.task_id)
        await job.done(says="seven")
        await until_told(task, "seven")
        assert len(site.desk.jobs) == 1


async def test_a_stand_in_sends_nothing_for_a_parent_that_does_not_have_the_sub_task(hire: Hire) -> None:
    """A decision that was prepared and never written leaves nothing behind."""
    async with serving_agent() as site:
        office = await hire(site)
        task = await office.begin("hello")
        await office.stand_in(task, "desk")
        async with asyncio.timeout(PATIENCE_S):
            assert await handle_of(office, task, "never-written").result() == "TASK_STATE_CANCELED"
        assert site.calls == []


async def test_a_recorded_history_replays(hire: Hire) -> None:
    async with serving_agent() as site:
        office = await hire(site)
        task = await office.begin("delegate desk count the stars")
        await (await site.desk.job()).done(says="seven")
        child = await until_row_is(task, "COMPLETED")
        handle = handle_of(office, task, child.task_id)
        await handle.result()
        history = await handle.fetch_history()
        replayer = Replayer(workflows=[RemoteTaskWorkflow], data_converter=office.engine.temporal.data_converter)
        await replayer.replay_workflow(history)
