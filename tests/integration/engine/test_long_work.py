"""Two hundred tool calls on a conversation of 200,000 tokens: what Temporal and the model have to carry stays small."""

import os
from collections.abc import Callable
from typing import Any

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent

from tests.integration.engine.conftest import Engine, Task
from tests.integration.engine.test_loop import Bench, bench
from tiny_harness.contracts import workflow_id
from tiny_harness.settings import Settings
from tiny_harness_engine.core.window import estimate
from tiny_harness_engine.models import ModelReply, ModelRequest, ToolCall
from tiny_harness_engine.records import CallResult

__all__ = ["bench"]

pytestmark = pytest.mark.timeout(240)

CALLS = 200
RESULT = "fact " * 800
"""What each call gives: about 1,000 tokens."""
WINDOW = 32_000
MAX_BYTES = 2_000_000
MAX_EVENTS = 1_000


class Tireless:
    """A model that looks something up, again and again, and sums up when it is asked to."""

    def __init__(self) -> None:
        self.calls = 0
        self.summaries = 0
        self.largest = 0

    async def reply(self, request: ModelRequest, on_text: Callable[[str], None]) -> ModelReply:
        del on_text
        if "older part" in request.system:
            self.summaries += 1
            return ModelReply("What I know so far.")
        shown = [request.system, *(message.text for message in request.messages)]
        self.largest = max(self.largest, sum(map(estimate, shown)))
        if self.calls == CALLS:
            return ModelReply("All is known.")
        self.calls += 1
        return ModelReply("", [ToolCall(f"c{self.calls}", "t/s.look", f'{{"n": {self.calls}}}')])

    async def close(self) -> None:
        return None


async def test_two_hundred_tool_calls_stay_small(stopped: Engine, bench: Bench) -> None:
    model = Tireless()
    stopped.model = model  # pyright: ignore[reportAttributeAccessIssue]
    document = stopped.settings.model_dump()
    document["scripted"] = {**document["scripted"], "context_window_tokens": WINDOW}
    stopped.settings = Settings.model_validate(document)

    async def look(name: str, arguments: str, schema_hash: str | None) -> CallResult:
        bench.called.append(f"{name} {arguments} {schema_hash}")
        return CallResult(text=f"{arguments}: {RESULT}")

    bench.call = look
    async with stopped.working():
        task = stopped.task()
        await task.start("m1", "find out everything")
        await until_parked(task)
        runs = await histories(stopped, task)
    assert len(bench.called) == len(set(bench.called)) == CALLS
    assert model.summaries >= 1
    assert model.largest <= WINDOW
    sizes = [(len(run), sum(event.ByteSize() for event in run)) for run in runs]
    assert max(events for events, _ in sizes) <= MAX_EVENTS
    assert max(size for _, size in sizes) < MAX_BYTES
    if os.environ.get("TINY_HARNESS_SOAK"):
        print(f"\n{CALLS} calls, {model.summaries} summaries, largest window {model.largest} of {WINDOW} tokens")
        print(
            "\n".join(f"run {number}: {events} events, {size} bytes" for number, (events, size) in enumerate(sizes, 1))
        )


async def until_parked(task: Task) -> None:
    """Wait for the reply: longer than one wait of the driver may take."""
    while True:
        try:
            await task.until(lambda now: now.state.is_interrupted or now.state.is_terminal)
        except TimeoutError:
            assert (await task.snapshot()).state.word == "WORKING"
            continue
        assert (await task.replies())[-1] == "All is known."
        return


async def histories(engine: Engine, task: Task) -> list[list[HistoryEvent]]:
    """Read the histories of all runs of a task, the first first."""
    run: Any = await task.handle.fetch_history()
    run_id = run.events[0].workflow_execution_started_event_attributes.first_execution_run_id
    found: list[list[HistoryEvent]] = []
    while run_id:
        handle = engine.temporal.get_workflow_handle(workflow_id(task.id), run_id=run_id)
        events = list((await handle.fetch_history()).events)
        found.append(events)
        last = events[-1]
        is_rolled = last.event_type == EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW
        run_id = last.workflow_execution_continued_as_new_event_attributes.new_execution_run_id if is_rolled else ""
    return found
