"""A bug costs one call: the call fails, the task lives and can be cancelled (DESIGN: a task's life)."""

import asyncio
from types import ModuleType
from typing import Any

import pytest

from tiny_harness import contracts
from tiny_harness.errors import HarnessError
from tiny_harness.states import TaskState
from tiny_harness_engine.calls import LOCAL_COMMIT_RETRY, STEP_HEARTBEAT
from tiny_harness_engine.core import lifecycle
from tiny_harness_engine.workflows import ledger, turns

from .conftest import Engine


class Bug:
    """Raises in place of a function of the workflow's, and counts."""

    def __init__(self, patch: pytest.MonkeyPatch, module: ModuleType | type, name: str) -> None:
        self.hits = 0
        self._patch = patch
        self._original = getattr(module, name)
        patch.setattr(module, name, self)

    def __call__(self, *_arguments: Any, **_options: Any) -> Any:
        self.hits += 1
        raise RuntimeError("planted")

    def __get__(self, instance: Any, _owner: type | None = None) -> Any:
        """As a method: do what the original does, then fail."""

        async def method(*arguments: Any) -> Any:
            await self._original(instance, *arguments)
            self()

        return method

    def remove(self) -> None:
        self._patch.undo()


@pytest.mark.parametrize(
    ("module", "name"),
    [(ledger, "TakeRequest"), (lifecycle, "accept"), (ledger.Ledger, "take")],
    ids=["before its first activity", "in its first activity", "after its first activity"],
)
async def test_a_bug_in_deliver_costs_one_call(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, module: ModuleType | type, name: str
) -> None:
    task = engine.task()
    await task.start("m1", "one")
    await task.until_state("INPUT_REQUIRED")
    await task.handle.terminate("so that the next run is loaded with the bug in place")
    bug = Bug(monkeypatch, module, name)
    await engine.runs().begin(task.id)
    with pytest.raises(HarnessError) as caught:
        await task.say("m2", "two")
    assert type(caught.value) is HarnessError
    assert bug.hits > 0
    await task.cancel()
    await task.until_state("CANCELED")


async def test_a_bug_in_the_first_delivery_leaves_no_task(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    bug = Bug(monkeypatch, lifecycle, "open_task")
    task = engine.task()
    with pytest.raises(HarnessError):
        await task.start("m1", "one")
    assert bug.hits > 0
    assert await engine.store.task(task.id) is None


@pytest.mark.parametrize(
    ("module", "name"),
    [(turns, "StepRequest"), (lifecycle, "end_turn")],
    ids=["before its first activity", "after its first activity"],
)
async def test_a_bug_in_a_round_parks_with_a_reason(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, module: ModuleType | type, name: str
) -> None:
    Bug(monkeypatch, module, name)
    task = engine.task()
    await task.start("m1", "one")
    await task.until_state("INPUT_REQUIRED")
    assert await task.replies() == [str(HarnessError())]
    await task.cancel()
    await task.until_state("CANCELED")


async def test_a_turn_that_cannot_even_be_parked_is_cancelled_all_the_same(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    Bug(monkeypatch, lifecycle, "end_turn")
    Bug(monkeypatch, lifecycle, "fail_turn")
    task = engine.task()
    await task.start("m1", "one")
    await engine.model.until_asked()
    await task.cancel()
    await task.until_state("CANCELED")


async def test_a_turn_that_could_not_be_parked_goes_on_when_the_bug_is_gone(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    bugs = [Bug(monkeypatch, lifecycle, name) for name in ("end_turn", "fail_turn")]
    task = engine.task()
    await task.start("m1", "one")
    await engine.model.until_asked()
    bugs[0].remove()
    await engine.housekeeping().once()
    await task.until_state("INPUT_REQUIRED")
    assert await task.replies() == ["re: one"]


async def test_a_bug_in_cancel_leaves_the_task_alive_and_housekeeping_ends_it(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    bug = Bug(monkeypatch, lifecycle, "cancel")
    task = engine.task()
    await task.start("m1", "one")
    await task.until_state("INPUT_REQUIRED")
    await engine.store.request_cancel(task.id, "ann")
    await task.cancel()
    assert (await task.say("m2", "two")).received_as == "turn"
    await task.until(lambda s: s.turn == 2 and s.state is TaskState.INPUT_REQUIRED)
    assert bug.hits > 0
    bug.remove()
    monkeypatch.setattr("tiny_harness_engine.housekeeping.CANCEL_PATIENCE", -STEP_HEARTBEAT)
    await engine.housekeeping().once()
    await task.until_state("CANCELED")


async def test_a_bug_in_reconcile_leaves_the_task_alive(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    task = engine.task()
    await task.start("m1", "one")
    await task.until_state("INPUT_REQUIRED")
    failed = asyncio.Event()
    tries: list[str] = []

    async def explode(task_id: str) -> None:
        tries.append(task_id)
        if len(tries) == LOCAL_COMMIT_RETRY.maximum_attempts:
            failed.set()
        raise RuntimeError("planted")

    monkeypatch.setattr(engine.store, "task", explode)
    await task.handle.signal(contracts.RECONCILE)
    async with asyncio.timeout(20):
        await failed.wait()
    monkeypatch.undo()
    await task.say("m2", "two")
    await task.until(lambda s: s.turn == 2 and s.state is TaskState.INPUT_REQUIRED)
