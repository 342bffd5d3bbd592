"""What a parent shows of its sub-tasks while they go on: each change on its own stream, and no model is woken by it."""

import json
from typing import Any

from tests.integration.engine.conftest import Engine, Task
from tests.integration.engine.test_loop import Bench, Troupe, bench
from tiny_harness.ext.task import KEY as TASK_KEY
from tiny_harness.states import TaskState

__all__ = ["bench"]


async def rows(task: Task) -> list[tuple[str, str | None]]:
    """Read how a parent's stream told its only sub-task, in order; the same twice in a row is once."""
    told: list[tuple[str, str | None]] = []
    for event in await task.log():
        metadata: dict[str, Any] = event.get("statusUpdate", {}).get("metadata", {})
        for row in metadata.get(TASK_KEY, {}).get("sub_tasks", ()):
            now = (row["state"].removeprefix("TASK_STATE_"), row.get("sub_state"))
            told += [] if told[-1:] == [now] else [now]
    return told


async def test_a_participants_sub_task_that_resumes_and_parks_is_shown_and_wakes_no_model(engine: Engine) -> None:
    task = engine.task()
    await task.start("m1", "one")
    await task.until_state("INPUT_REQUIRED")
    answer = await task.command("c1", "/sub-task look at the logs")
    assert answer.data is not None
    child = Task(engine, answer.data["task_id"])
    await engine.housekeeping().once()
    await child.say("k1", "what do you see?")
    await child.until(lambda now: now.turn == 1 and now.state is TaskState.INPUT_REQUIRED)
    parked = ("INPUT_REQUIRED", "awaiting-next-message")
    after = await task.until(lambda now: now.children[0].seq >= 3 and now.children[0].state.is_interrupted)
    assert await rows(task) == [parked, ("WORKING", None), parked]
    assert (after.turn, after.state, after.mailbox) == (1, TaskState.INPUT_REQUIRED, ())
    assert len(engine.model.requests) == 2, "one turn of each task"


async def test_a_delegated_sub_task_that_asks_is_shown_with_its_question_and_wakes_no_model(
    stopped: Engine, bench: Bench
) -> None:
    ask = [("ask_participant", {"question": "Which one?"})]
    troupe = Troupe(parent=[[("spawn_subtask", {"goal": "child"})], "I wait.", "read"], child=[ask, "the red one"])
    stopped.model = troupe  # pyright: ignore[reportAttributeAccessIssue]
    async with stopped.working():
        task = stopped.task()
        await task.start("m1", "parent")
        asked = await task.until(
            lambda now: bool(now.children) and now.children[0].sub_state == "awaiting-answer" and not now.reading
        )
        assert (asked.turn, len(troupe.stories["parent"].requests)) == (1, 2)
        child = Task(stopped, asked.children[0].task_id)
        await child.say("k1", "the red one")
        await task.until(lambda now: now.turn == 2 and now.state is TaskState.INPUT_REQUIRED)
    told = await rows(task)
    assert told[-3:] == [("INPUT_REQUIRED", "awaiting-answer"), ("WORKING", None), ("COMPLETED", None)]
    assert "the red one" in json.dumps([message.text for message in troupe.stories["parent"].requests[-1].messages])
