"""A hook that blocks the event loop is named while it does."""

import logging
import threading

import pytest

from tiny_harness.hooks import Executor, Hooks
from tiny_harness.hooks.contexts import TaskCreatedContext, TaskRef
from tiny_harness_engine.watchdog import Watchdog


class Told(logging.Handler):
    """Sets an event when something is logged."""

    def __init__(self) -> None:
        super().__init__()
        self.event = threading.Event()
        self.words = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.words = record.getMessage()
        self.event.set()


async def test_a_hook_that_blocks_the_loop_is_named_while_it_does(monkeypatch: pytest.MonkeyPatch) -> None:
    told = Told()
    monkeypatch.setattr("tiny_harness_engine.watchdog.BEAT_S", 0.01)
    logging.getLogger("tiny_harness_engine.watchdog").addHandler(told)

    async def block(_context: TaskCreatedContext) -> None:
        assert told.event.wait(timeout=30)  # blocks on purpose, until it has been noticed

    hooks = Hooks([Executor("p/slow", "task.created", "pre", block, deadline_s=30)])
    context = TaskCreatedContext(
        operation="task.created",
        phase="pre",
        task=TaskRef(task_id="t", context_id="c", state="TASK_STATE_WORKING"),
        correlation_id="x",
    )
    try:
        async with Watchdog(blocked_after_s=0.05).watching():
            outcome = await hooks.run(context)
    finally:
        logging.getLogger("tiny_harness_engine.watchdog").removeHandler(told)
    assert outcome.failure is None
    assert "the hook p/slow" in told.words
