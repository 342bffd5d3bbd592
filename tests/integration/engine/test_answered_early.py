"""An approval that the run hears of only after it was given: Temporal forgot that it had been asked for."""

from collections.abc import Awaitable, Callable
from typing import Any

from tests.integration.engine.conftest import Engine
from tests.integration.engine.test_loop import Bench, Story, bench, policy
from tests.integration.engine.test_stale_runs import answer, ask
from tiny_harness.contracts import TaskSnapshot
from tiny_harness.errors import Unavailable
from tiny_harness.states import AWAITING_NEXT_MESSAGE
from tiny_harness.store import Commit, Committed

__all__ = ["bench"]


class Forgetful:
    """A store that once does not tell that it has taken a question; somebody answers it meanwhile."""

    def __init__(self, store: Any, meanwhile: Callable[[TaskSnapshot], Awaitable[Any]]) -> None:
        self._store = store
        self._meanwhile = meanwhile
        self._has_forgotten = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def commit(self, commit: Commit) -> Committed:
        done = await self._store.commit(commit)
        if commit.cause.startswith("ask:") and not self._has_forgotten:
            self._has_forgotten = True
            await self._meanwhile(done.snapshot)
            raise Unavailable("the answer was lost")
        return done


async def test_a_call_that_was_approved_before_its_run_knew_of_the_question_is_made(
    stopped: Engine, bench: Bench
) -> None:
    story = Story([("t/s.refund", {})], "done")
    stopped.model = story  # pyright: ignore[reportAttributeAccessIssue]
    task = stopped.task()

    async def approve(parked: TaskSnapshot) -> None:
        assert parked.question is not None
        taken = await answer(stopped, task, parked, "a1", parked.question.request_id)
        assert taken.refusal is None

    stopped.store = Forgetful(stopped.store, approve)  # pyright: ignore[reportAttributeAccessIssue]
    async with stopped.working(plugins=[policy(ask)]):
        await task.start("m1", "go")
        await task.until(lambda now: now.turn == 1 and now.sub_state == AWAITING_NEXT_MESSAGE)
    assert len(bench.called) == 1
    assert (await task.replies())[-1] == "done"
    [result] = [message.text for message in story.requests[-1].messages if message.role == "tool"]
    assert "not known" not in result
