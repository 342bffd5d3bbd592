"""Answers to questions that have a request id, as clients send them again."""

from typing import Any

import pytest

from tiny_harness.envelope import answer_part
from tiny_harness.errors import AlreadyAnswered
from tiny_harness.hooks.contexts import ToolContext
from tiny_harness.states import AWAITING_NEXT_MESSAGE

from .conftest import Engine
from .test_loop import Bench, Story, begin, bench, policy

__all__ = ["bench"]  # a fixture


async def test_an_answer_that_is_sent_again_counts_once(stopped: Engine, bench: Bench) -> None:
    async def ask(_context: ToolContext) -> dict[str, Any]:
        return {"ask": "Really?"}

    story = Story([("t/s.refund", {})], "done")
    stopped.model = story  # pyright: ignore[reportAttributeAccessIssue]
    async with stopped.working(plugins=[policy(ask)]):
        task = await begin(stopped, story)
        question = (await task.snapshot()).question
        assert question is not None
        first = await task.parts("a1", answer_part(question.request_id, "approve"))
        await task.until(lambda s: s.sub_state == AWAITING_NEXT_MESSAGE)
        again = await task.parts("a1", answer_part(question.request_id, "approve"))
        with pytest.raises(AlreadyAnswered):
            await task.parts("a2", answer_part(question.request_id, "approve"))
    assert (again.seq, again.received_as) == (first.seq, "repeat")
    assert len(bench.called) == 1
