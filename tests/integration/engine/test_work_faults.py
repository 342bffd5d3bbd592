"""What may go wrong with a step's calls and with sub-tasks, each told to the model (issue 4's faults)."""

import asyncio
from collections.abc import Callable

import pytest

from tests.integration.engine.conftest import PATIENCE_S, Engine, Task
from tests.integration.engine.test_loop import Bench, Story, Troupe, bench, steps
from tiny_harness.contracts import TaskSnapshot
from tiny_harness.errors import ModelError, UnresolvedSubTasks
from tiny_harness.settings import Settings
from tiny_harness.states import TaskState
from tiny_harness_engine.models import ModelReply, ModelRequest

__all__ = ["bench"]

SPAWN = [("spawn_subtask", {"goal": "child"})]


def settled(now: TaskSnapshot) -> bool:
    """Whether the parent's only sub-task has ended, and its model has read that."""
    return bool(now.children) and not now.unresolved and now.state is TaskState.INPUT_REQUIRED and now.turn == 2


async def test_a_hundred_calls_in_one_step_all_get_their_results(stopped: Engine, bench: Bench) -> None:
    story = Story([("t/s.look", {"n": number}) for number in range(100)], "all seen")
    stopped.model = story  # pyright: ignore[reportAttributeAccessIssue]
    async with stopped.working():
        task = stopped.task()
        await task.start("m1", "look at everything")
        await task.until_state("INPUT_REQUIRED")
    assert sorted(bench.called) == sorted(f't/s.look {{"n": {number}}}' for number in range(100))
    assert [len(names) for names in steps(await task.log())] == [100]
    results = [message for message in story.requests[-1].messages if message.role == "tool"]
    assert [result.call_id for result in results] == [f"c1.{number}" for number in range(100)]


async def test_a_child_that_fails_is_read_by_its_parent_with_the_reason(stopped: Engine, bench: Bench) -> None:
    troupe = Troupe(parent=[SPAWN, "I wait.", "It failed, then."])

    class Ill(Story):
        async def reply(self, request: ModelRequest, on_text: Callable[[str], None]) -> ModelReply:
            del request, on_text
            raise ModelError("out of tea")

    troupe.stories["child"] = Ill()
    stopped.model = troupe  # pyright: ignore[reportAttributeAccessIssue]
    async with stopped.working():
        task = stopped.task()
        await task.start("m1", "parent")
        done = await task.until(settled)
    assert done.children[0].state is TaskState.FAILED
    assert "is FAILED" in troupe.stories["parent"].heard()[-1]
    assert "out of tea" in troupe.stories["parent"].heard()[-1]


async def test_a_child_that_is_cancelled_is_read_by_its_parent(stopped: Engine, bench: Bench) -> None:
    troupe = Troupe(parent=[SPAWN, "I wait.", "Cancelled, then."], child=[[("t/s.look", {})], "never"])
    stopped.model = troupe  # pyright: ignore[reportAttributeAccessIssue]
    bench.gate.clear()
    async with stopped.working():
        task = stopped.task()
        await task.start("m1", "parent")
        child = Task(stopped, (await task.until(lambda now: bool(now.children))).children[0].task_id)
        async with asyncio.timeout(PATIENCE_S):
            await bench.reached.wait()
        await child.cancel()
        done = await task.until(settled)
    assert done.children[0].state is TaskState.CANCELED
    news = troupe.stories["parent"].heard()[-1]
    assert "is CANCELED" in news
    assert "It said nothing." in news, "its brief is not its result"


async def test_a_child_that_is_never_answered_keeps_its_parent_from_completing(stopped: Engine, bench: Bench) -> None:
    troupe = Troupe(parent=[SPAWN, "I wait."], child=[[("ask_participant", {"question": "Which one?"})]])
    stopped.model = troupe  # pyright: ignore[reportAttributeAccessIssue]
    async with stopped.working():
        task = stopped.task()
        await task.start("m1", "parent")
        parked = await task.until(
            lambda now: bool(now.children) and now.children[0].sub_state == "awaiting-answer" and not now.reading
        )
        assert parked.children[0].state is TaskState.INPUT_REQUIRED
        with pytest.raises(UnresolvedSubTasks) as refusal:
            await task.control("x", "complete")
        assert refusal.value.ids == (parked.children[0].task_id,)
        assert (await task.snapshot()).state is TaskState.INPUT_REQUIRED


async def test_a_tree_of_tasks_has_its_limit(stopped: Engine, bench: Bench) -> None:
    limits = {"tasks": {"max_tree": 3}}
    stopped.settings = Settings.model_validate({**stopped.settings.model_dump(), **limits})
    goals = ("child one", "child two", "child three")
    spawn = [("spawn_subtask", {"goal": goal}) for goal in goals]
    troupe = Troupe(parent=[spawn, "I wait.", "read", "read"], child=["done", "done"])
    stopped.model = troupe  # pyright: ignore[reportAttributeAccessIssue]
    async with stopped.working():
        task = stopped.task()
        await task.start("m1", "parent")
        await task.until(lambda now: len(now.children) == 2 and not now.unresolved and now.state.is_interrupted)
        answer = await task.command("c1", "/sub-task one more")
    assert "as many as they may be" in "\n".join(m.text for r in troupe.stories["parent"].requests for m in r.messages)
    assert (answer.outcome, answer.text) == ("refused", "a task and all its sub-tasks may be 3 together")
