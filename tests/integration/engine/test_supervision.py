"""Supervised tasks on a running engine: queue, updates of the worker, and what its supervisor does (adr-042)."""

import uuid
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from tests.integration.engine.conftest import Engine, Task
from tests.integration.engine.test_loop import Story
from tiny_harness.contracts import TaskSnapshot, supervisor_workflow_id
from tiny_harness.envelope import MEDIA_TYPE, WorkerUpdate, update_part
from tiny_harness.errors import RoleNotPermitted
from tiny_harness.ext.task import AGENT_ID
from tiny_harness.settings import Settings

A_WHILE = 0.003
"""Minutes: the ladder's rungs in these tests."""


def hurried(engine: Engine, **supervision: Any) -> None:
    """Make the engine's watchdog impatient."""
    document = {**engine.settings.model_dump(), "supervision": supervision}
    engine.settings = Settings.model_validate(document)


@pytest.fixture
def worker() -> str:
    return f"bob-{uuid.uuid4().hex[:8]}"


@pytest.fixture
async def patient(stopped: Engine) -> AsyncGenerator[Engine]:
    """An engine that reminds nobody within a test."""
    async with stopped.working():
        yield stopped


async def given(engine: Engine, worker: str, *requests: str) -> list[Task]:
    """Give tasks to a worker, in order."""
    tasks: list[Task] = []
    for request in requests:
        task = engine.task()
        await task.start(f"m-{request}", request, "supervised", worker)
        tasks.append(task)
    return tasks


async def update(task: Task, worker: str, status: Any, summary: str = "", **more: Any) -> None:
    part = update_part(WorkerUpdate(status=status, summary=summary, **more))
    await task.parts(f"u-{uuid.uuid4().hex}", part, sender=worker)


async def until(task: Task, **facts: Any) -> TaskSnapshot:
    """Wait until the task's supervision shows all of this."""
    return await task.until(
        lambda now: (
            now.supervision is not None
            and all(getattr(now.supervision, name) == value for name, value in facts.items())
        )
    )


async def test_the_worker_says_how_the_task_ended(patient: Engine, worker: str) -> None:
    [task] = await given(patient, worker, "paint the fence")
    await task.until_state("WORKING")
    await task.say("w1", "I have the paint.", sender=worker)
    assert (await task.snapshot()).state.word == "WORKING"
    await update(task, worker, "done", "The fence is green.")
    ended = await task.until_state("COMPLETED")
    assert ended.supervision is not None
    assert ended.supervision.last_line == "The fence is green."
    *_, artifact, last = await task.log()
    assert artifact["artifactUpdate"]["artifact"]["parts"] == [{"text": "The fence is green."}]
    assert last["statusUpdate"]["status"]["message"]["parts"] == [{"text": "The fence is green."}]


async def test_nobody_else_may_say_how_it_ended(patient: Engine, worker: str) -> None:
    [task] = await given(patient, worker, "paint the fence")
    with pytest.raises(RoleNotPermitted):
        await update(task, "ann", "done", "I say so.")
    assert not (await task.snapshot()).state.is_terminal


async def test_a_blocked_task_says_what_it_needs_and_goes_on_with_the_answer(patient: Engine, worker: str) -> None:
    [task] = await given(patient, worker, "paint the fence")
    await task.until_state("WORKING")
    await update(task, worker, "blocked", "Which colour?")
    blocked = await task.until_state("INPUT_REQUIRED")
    assert blocked.sub_state == "awaiting-answer"
    await task.say("a1", "Green.")
    assert (await task.until_state("WORKING")).sub_state is None


async def test_tasks_wait_in_a_queue_and_start_in_order(patient: Engine, worker: str) -> None:
    first, second, third = await given(patient, worker, "one", "two", "three")
    await first.until_state("WORKING")
    await until(second, position=1)
    await until(third, position=2)
    await update(first, worker, "failed", "No.")
    await second.until_state("WORKING")
    await until(third, position=1)
    await update(second, worker, "blocked", "What now?")
    await third.until_state("WORKING")
    await second.say("a1", "Go on.")
    await second.until_state("WORKING")  # beside the third


async def test_a_quiet_worker_is_reminded_and_then_the_task_is_stalled(stopped: Engine, worker: str) -> None:
    hurried(stopped, quiet_minutes=A_WHILE, ladder_minutes=[A_WHILE] * 2, stalled_after_minutes=A_WHILE)
    async with stopped.working():
        [task] = await given(stopped, worker, "paint the fence")
        stalled = await until(task, is_stalled=True)
        assert stalled.supervision is not None
        assert stalled.supervision.reminders == 3
        assert stalled.state.word == "WORKING"
        said = await task.replies()
        assert [words for words in said if words.startswith("Reminder")] == said[:3]
        assert f'{task.id}: "paint the fence"; your last words: "none"' in said[0]
        assert "stalled" in said[3]
        await task.say("w1", "Still here.", sender=worker)
        await until(task, is_stalled=False)


async def test_a_task_expires_and_says_so(stopped: Engine, worker: str) -> None:
    hurried(stopped, expire_hours=0.0004, warn_hours=[0.0001, 0.0002])
    async with stopped.working():
        [task] = await given(stopped, worker, "paint the fence")
        ended = await task.until_state("CANCELED")
        assert ended.supervision is not None
        assert ended.supervision.is_expired
        assert ended.supervision.warnings == 2
        said = await task.replies()
        assert "the task expires in" in said[0]
        assert "the task has expired" in said[-1]


async def test_our_own_agent_is_reminded_by_a_turn(stopped: Engine) -> None:
    hurried(stopped, quiet_minutes=A_WHILE, ladder_minutes=[10.0])
    async with stopped.working():
        [task] = await given(stopped, AGENT_ID, "count the sheep")
        await task.until(lambda now: now.turn == 2 and not now.reading)
        asked = stopped.model.requests[-1].messages[-1].text
        assert "<reminder>" in asked
        assert "count the sheep" in asked
        assert (await task.snapshot()).state.word == "WORKING"
        await task.control("over", "complete")
        await stopped.temporal.get_workflow_handle(supervisor_workflow_id(AGENT_ID)).result()


async def test_with_no_task_open_there_is_no_supervisor(patient: Engine, worker: str) -> None:
    [task] = await given(patient, worker, "paint the fence")
    await task.until_state("WORKING")
    await update(task, worker, "done", "Done.")
    handle = patient.temporal.get_workflow_handle(supervisor_workflow_id(worker))
    await handle.result()


async def test_our_own_agent_says_itself_how_the_task_ended(stopped: Engine) -> None:
    blocked = ("task_update", {"status": "blocked", "summary": "Which sheep?"})
    done = ("task_update", {"status": "done", "summary": "42 sheep."})
    story = Story("I count.", [blocked], [done])
    stopped.model = story  # pyright: ignore[reportAttributeAccessIssue]
    async with stopped.working():
        [task] = await given(stopped, AGENT_ID, "count the sheep")
        await task.until(lambda now: now.turn == 1 and not now.reading)
        assert (await task.snapshot()).state.word == "WORKING"  # words alone end nothing
        await task.say("m2", "How far are you?")
        assert (await task.until_state("INPUT_REQUIRED")).sub_state == "awaiting-answer"
        await task.say("m3", "All of them.")
        await task.until_state("COMPLETED")
        assert await task.replies() == ["I count.", "Which sheep?", "42 sheep."]
        assert "task_update" in {tool.name for tool in story.requests[0].tools}
        await stopped.temporal.get_workflow_handle(supervisor_workflow_id(AGENT_ID)).result()


async def test_a_task_for_a_worker_is_a_supervised_sub_task(stopped: Engine, worker: str) -> None:
    hurried(stopped, workers={worker: {"kind": "human"}})
    story = Story("Hello.", [("create_task_for_participant", {"participant": worker, "goal": "dig a hole"})], "I wait.")
    stopped.model = story  # pyright: ignore[reportAttributeAccessIssue]
    async with stopped.working():
        parent = stopped.task()
        people = [{"id": worker, "role": "watcher"}]
        await parent.start("m0", "hello")
        await parent.until_state("INPUT_REQUIRED")
        envelope = {"data": {"kind": "task", "payload": {"participants": people}}, "mediaType": MEDIA_TYPE}
        await parent.parts("m1", {"text": "have it dug"}, envelope)
        found = await parent.until(lambda now: bool(now.children))
        child = Task(stopped, found.children[0].task_id)
        assert (await child.until_state("WORKING")).lifecycle == "supervised"
        await update(child, worker, "done", "Two metres deep.")
        await parent.until(lambda now: now.children[0].state.word == "COMPLETED" and not now.reading)
        assert "Two metres deep." in "\n".join(story.heard())


async def test_status_says_how_the_task_stands_with_its_worker(patient: Engine, worker: str) -> None:
    _, second = await given(patient, worker, "one", "two")
    await until(second, position=1)
    answer = await second.command("c1", "/status")
    assert f"Worker: {worker}, place 1 in the queue" in answer.text
    assert answer.data is not None
    assert answer.data["supervision"]["queue_position"] == 1
