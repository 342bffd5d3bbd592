"""Tools that are not listed: their server is only starting, or has not come back after a restart."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tiny_harness.states import AWAITING_ANSWER, AWAITING_NEXT_MESSAGE
from tiny_harness_engine.models import ToolCall
from tiny_harness_engine.skills import SkillLibrary
from tiny_harness_engine.toolbox import Toolbox

from .conftest import PATIENCE_S, Engine
from .test_loop import Bench, Story, begin


class Absent(Bench):
    """Tools that are listed only once somebody has waited for them, or not at all."""

    def __init__(self) -> None:
        super().__init__()
        self.is_listed = True
        self.comes_up = False

    async def settle(self) -> None:
        self.is_listed = self.is_listed or self.comes_up

    def tools(self) -> Sequence[Any]:
        return super().tools() if self.is_listed else ()


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Absent:
    bench = Absent()

    @asynccontextmanager
    async def open_bench(*_: object) -> AsyncGenerator[Absent]:
        yield bench

    monkeypatch.setattr("tiny_harness_engine.worker.open_servers", open_bench)
    return bench


async def test_a_call_of_a_tool_whose_server_is_starting_waits_for_it() -> None:
    bench = Absent()
    bench.is_listed, bench.comes_up = False, True
    toolbox = Toolbox(bench, SkillLibrary(()), {})
    [record] = await toolbox.record([ToolCall("c", "t/s.refund", "{}")])
    assert record.schema_hash == "h"
    [plan] = toolbox.plan([record])
    assert plan.is_tool


async def test_a_call_that_may_be_made_once_is_not_made_again_while_its_server_is_away(
    stopped: Engine, bench: Absent
) -> None:
    story = Story([("t/s.refund", {"n": 1})], "thank you")
    stopped.model = story  # pyright: ignore[reportAttributeAccessIssue]
    bench.gate.clear()
    async with stopped.working():
        task = stopped.task()
        await task.start("m1", "go")
        async with asyncio.timeout(PATIENCE_S):
            await bench.reached.wait()
    bench.gate.set()
    bench.is_listed = False
    async with stopped.working():
        await task.until(lambda s: s.sub_state == AWAITING_ANSWER)
        await task.say("m2", "yes, it did")
        await task.until(lambda s: s.sub_state == AWAITING_NEXT_MESSAGE)
    assert len(bench.called) == 1
    assert "Did the call take effect" in (await task.replies())[-2]


async def test_a_tool_that_nobody_ever_listed_is_told_to_be_none(stopped: Engine, bench: Absent) -> None:
    bench.is_listed = False
    story = Story([("t/s.refund", {})], "sorry")
    stopped.model = story  # pyright: ignore[reportAttributeAccessIssue]
    async with stopped.working():
        task = await begin(stopped, story)
    assert "There is no tool 't/s.refund'" in story.heard()[2]
    assert bench.called == []
    assert (await task.replies())[-1] == "sorry"
