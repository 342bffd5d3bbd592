"""The store goes away in the middle of work, again and again: work waits for it, and nothing fails or is done twice."""

from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, Final

import pytest

from tests.integration.engine.conftest import Engine
from tests.integration.engine.test_loop import Bench, Story, bench
from tiny_harness.commands import CommandRegistry, CommandResult
from tiny_harness.errors import Unavailable
from tiny_harness.hooks.contexts import CommandContext
from tiny_harness.states import AWAITING_NEXT_MESSAGE
from tiny_harness_engine.calls import MODEL_ATTEMPTS

__all__ = ["bench"]

LOST_ATTEMPTS: Final = MODEL_ATTEMPTS
"""How often an activity may be lost in these tests."""
MANY: Final = MODEL_ATTEMPTS + 1
"""More often than anything may fail, or be lost by its workers."""


class Absent:
    """A store that does not answer some operations for the first few times."""

    def __init__(self, store: Any, **times: int) -> None:
        self._store = store
        self._left = Counter(times)
        self.refused: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        work = getattr(self._store, name)
        return self._refusing(name, work) if name in self._left else work

    def _refusing(self, name: str, work: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def call(*arguments: Any, **options: Any) -> Any:
            if self._left[name] > 0:
                self._left[name] -= 1
                self.refused[name] += 1
                raise Unavailable("the store cannot answer now")
            return await work(*arguments, **options)

        return call


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the waits between attempts, and the patience with lost ones."""
    monkeypatch.setattr("tiny_harness_engine.workflows.outage.LOST_ATTEMPTS", LOST_ATTEMPTS)
    monkeypatch.setattr("tiny_harness_engine.workflows.outage.OUTAGE_BACKOFF", (0.01,))
    monkeypatch.setattr("tiny_harness_engine.activities.recording.RECORD_PAUSE_S", 0.01)


async def tell(engine: Engine, story: Story, **away: int) -> tuple[list[str], Absent]:
    """Let a story be told while the store is away for some operations; gives the replies."""
    store = Absent(engine.store, **away)
    engine.model = story  # pyright: ignore[reportAttributeAccessIssue]
    engine.store = store  # pyright: ignore[reportAttributeAccessIssue]
    task = engine.task()
    async with engine.working():
        await task.start("m1", "go")
        await task.until(lambda now: now.turn == 1 and now.sub_state == AWAITING_NEXT_MESSAGE)
    return await task.replies(), store


async def test_a_step_that_cannot_begin_waits_for_the_store(stopped: Engine) -> None:
    story = Story("here I am")
    replies, store = await tell(stopped, story, step=MANY)
    assert replies == ["here I am"]
    assert len(story.requests) == 1
    assert store.refused["step"] == MANY


async def test_an_answer_that_cannot_be_recorded_is_not_asked_for_again(stopped: Engine) -> None:
    story = Story("here I am")
    replies, store = await tell(stopped, story, save_step=MANY)
    assert replies == ["here I am"]
    assert len(story.requests) == 1
    assert store.refused["save_step"] == MANY


async def test_a_call_that_cannot_be_claimed_is_made_once_the_store_is_back(stopped: Engine, bench: Bench) -> None:
    replies, store = await tell(stopped, Story([("t/s.refund", {"n": 1})], "done"), claim_call=MANY)
    assert replies[-1] == "done"
    assert bench.called == ['t/s.refund {"n": 1}']
    assert store.refused["claim_call"] == MANY


async def test_a_calls_result_that_cannot_be_recorded_raises_no_doubt(stopped: Engine, bench: Bench) -> None:
    replies, store = await tell(stopped, Story([("t/s.refund", {"n": 1})], "done"), save_call=MANY)
    assert replies == ["done"]
    assert bench.called == ['t/s.refund {"n": 1}']
    assert store.refused["save_call"] == MANY


async def test_a_command_that_cannot_be_claimed_is_run_once_the_store_is_back(stopped: Engine) -> None:
    run: list[str] = []

    def note(context: CommandContext) -> CommandResult:
        run.append(context.arguments)
        return CommandResult(reply="noted")

    commands = CommandRegistry()
    commands.command("note", description="Note something")(note)
    async with stopped.working():
        task = stopped.task()
        await task.start("m1", "go")
        await task.until_state("INPUT_REQUIRED")
    store = Absent(stopped.store, save_step=MANY)
    stopped.store = store  # pyright: ignore[reportAttributeAccessIssue]
    async with stopped.working(commands=commands):
        answer = await task.command("c1", "/note it")
    assert (answer.outcome, answer.text) == ("done", "noted")
    assert run == ["it"]
    assert store.refused["save_step"] == MANY
