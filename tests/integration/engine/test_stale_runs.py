"""A run whose state is behind the store: Temporal forgot what a local activity had committed before a kill."""

import json

from tests.integration.engine.conftest import Engine, Task
from tests.integration.engine.test_loop import Bench, Story, begin, bench, policy
from tiny_harness.contracts import Delivery, Sender, TaskSnapshot
from tiny_harness.envelope import answer_part
from tiny_harness.errors import AlreadyAnswered, unpack
from tiny_harness.hooks import Hooks
from tiny_harness.hooks.contexts import ToolContext
from tiny_harness.states import AWAITING_NEXT_MESSAGE, TaskState
from tiny_harness_engine.activities.command_chain import CommandChain
from tiny_harness_engine.activities.committer import Committer
from tiny_harness_engine.activities.completion import Completion
from tiny_harness_engine.activities.settling import Settling
from tiny_harness_engine.activities.take import TakeActivity
from tiny_harness_engine.agents.stand_ins import StandIns
from tiny_harness_engine.calls import TakeAnswer, TakeRequest
from tiny_harness_engine.registry import build_registry
from tiny_harness_engine.supervisors import Supervisors

__all__ = ["bench"]


async def ask(_context: ToolContext) -> dict[str, str]:
    return {"ask": "Really?"}


def taking(engine: Engine) -> TakeActivity:
    """The activity as an engine has it."""
    queue = engine.settings.temporal.task_queue
    stand_ins = StandIns(engine.store, engine.temporal, queue)
    supervisors = Supervisors(engine.settings, engine.temporal)
    committer = Committer(engine.store, engine.bus, engine.runs(), stand_ins, supervisors)
    hooks = Hooks([])
    chain = CommandChain(committer, build_registry(engine.settings), hooks, engine.settings, list, list)
    return TakeActivity(Settling(committer), hooks, chain, Completion(engine.store, hooks))


async def answer(engine: Engine, task: Task, state: TaskSnapshot, message_id: str, request_id: str) -> TakeAnswer:
    """Answer a question, to a run that knows this state."""
    message = {"messageId": message_id, "role": "ROLE_USER", "parts": [answer_part(request_id, "approve")]}
    delivery = Delivery(sender=Sender(id="ann"), message=json.dumps(message))
    return await taking(engine).take(TakeRequest(task_id=task.id, delivery=delivery, snapshot=state))


async def test_the_answer_to_a_question_that_the_run_has_forgotten_is_taken(stopped: Engine, bench: Bench) -> None:
    story = Story([("t/s.refund", {})], "done")
    stopped.model = story  # pyright: ignore[reportAttributeAccessIssue]
    async with stopped.working(plugins=[policy(ask)]):
        task = await begin(stopped, story)
        parked = await task.snapshot()
        assert parked.question is not None
        forgot = {"state": TaskState.WORKING, "sub_state": None, "question": None, "head": parked.head - 1}
        stale = parked.model_copy(update=forgot)
        taken = await answer(stopped, task, stale, "a1", parked.question.request_id)
        assert taken.refusal is None
        repeat = await answer(stopped, task, stale, "a1", parked.question.request_id)
        assert repeat.receipt is not None
        assert repeat.receipt.received_as == "repeat"
        await stopped.housekeeping().once()
        await task.until(lambda now: now.sub_state == AWAITING_NEXT_MESSAGE)
        late = await answer(stopped, task, stale, "a2", parked.question.request_id)
    assert late.refusal is not None
    assert isinstance(unpack(*late.refusal), AlreadyAnswered)
    assert late.snapshot is not None
    assert late.snapshot.head > parked.head
