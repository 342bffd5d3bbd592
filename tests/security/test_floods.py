"""Abuse case 6: a participant makes sub-tasks no faster than the rate allows, and no more than a task may have."""

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from tests.security.harness import whole_harness
from tiny_harness.ext import task as task_ext

pytestmark = pytest.mark.timeout(180)

RATE = 60
FLOOD = 10_000
"""What the flooder would send if they were let."""
FLOOD_S = 4.0
AT_ONCE = 8


async def test_a_flood_of_sub_tasks_meets_the_rate_and_others_are_served(tmp_path: Path) -> None:
    async with whole_harness(tmp_path, {"server": {"rate_limit_per_minute": RATE}}) as harness:
        ann, bob = harness.person("ann"), harness.person("bob")
        task_id = (await ann.say("hello")).task_id
        statuses: Counter[int] = Counter()
        waits: list[int] = []
        left = iter(range(FLOOD))

        async def flood() -> None:
            for number in left:
                answer = await ann.call(
                    "SendMessage",
                    message={"messageId": f"f{number}", "taskId": task_id, "parts": [{"text": f"/sub-task {number}"}]},
                )
                statuses[answer.status_code] += 1
                if answer.status_code == 429:
                    waits.append(int(answer.headers["retry-after"]))

        async with asyncio.TaskGroup() as group:
            flooding = [group.create_task(flood()) for _ in range(AT_ONCE)]
            loop = asyncio.get_running_loop()
            end = loop.time() + FLOOD_S
            served = 0
            while loop.time() < end or statuses[429] <= RATE:
                async with asyncio.timeout(30):
                    answer = await bob.say("/status") if served % 2 else await bob.say("are you there?")
                assert answer.error is None
                served += 1
            for task in flooding:
                task.cancel()
        assert served >= 2
        assert set(statuses) == {200, 429}
        # A moving window: so many in any minute, and the test floods for a part of one.
        assert statuses[200] <= RATE
        assert statuses[429] > RATE
        assert all(1 <= wait <= 60 for wait in waits)
        listed = (await bob.call("ListTasks", pageSize=1)).json()["result"]
        assert listed["totalSize"] == served, "and nobody sees another's"


async def test_a_task_has_so_many_open_sub_tasks_however_slowly_they_are_made(tmp_path: Path) -> None:
    async with whole_harness(tmp_path, {"tasks": {"max_children": 5}}) as harness:
        ann = harness.person("ann")
        task_id = (await ann.say("hello")).task_id
        answers = await asyncio.gather(*(ann.say(f"/sub-task {number}", task_id) for number in range(12)))
        assert Counter(answer.outcome for answer in answers) == {"done": 5, "refused": 7}
        assert {answer.words for answer in answers if answer.outcome == "refused"} == {
            "a task may have 5 open sub-tasks"
        }
        children = (await ann.task(task_id))["metadata"][task_ext.KEY]["sub_tasks"]
        assert len(children) == 5
        assert (await ann.call("ListTasks", pageSize=1)).json()["result"]["totalSize"] == 6
        await ann.cancel(children[0]["task_id"])
        await ann.until(task_id, lambda facts: "TASK_STATE_CANCELED" in str(facts["metadata"]["sub_tasks"]))
        assert (await ann.say("/sub-task again", task_id)).outcome == "done"
