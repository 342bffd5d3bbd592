"""What a slash command does to its task: recorded, answered, and nothing else."""

from typing import Any

import pytest

from tests.unit.engine.test_effects import task
from tiny_harness.contracts import Input, Sender, TaskSnapshot
from tiny_harness.effects import CreateSubTask, SetModel
from tiny_harness.errors import QueueFull
from tiny_harness.hooks import Verdict
from tiny_harness.states import TERMINAL_STATES, TaskState
from tiny_harness_engine.core import commands
from tiny_harness_engine.core.commands import MAX_COMMANDS, CommandDone
from tiny_harness_engine.core.drafts import Decision, Draft

ANN = Sender(id="ann")
NOTED = Verdict("p/it", "command.invoked.pre", "refused", "no", 1)


def recorded(snapshot: TaskSnapshot) -> Decision:
    draft = Draft(kind="input", state=snapshot.state, received_as="command", received="{}")
    return Decision(snapshot=snapshot, drafts=(draft,), digest="d", received_as="command")


def done(**fields: Any) -> CommandDone:
    return CommandDone.model_validate({"name": "model", "outcome": "done", "reply": "ok", **fields})


WORKING = task(
    state=TaskState.WORKING, sub_state=None, turn=3, step=1, reading=(Input(seq=5, message_id="m5"),), head=5
)
PARKED = task(head=5)


@pytest.mark.parametrize("before", [PARKED, WORKING], ids=["parked", "working"])
def test_a_command_and_its_reply_are_one_commit_and_leave_state_and_turn(before: TaskSnapshot) -> None:
    decision = commands.answer(recorded(before), "c1", done(data={"model": "big"}))
    assert decision.snapshot == before
    request, reply = decision.drafts
    assert (request.received_as, decision.digest) == ("command", "d")
    assert (reply.kind, reply.state, reply.sub_state) == ("reply", before.state, before.sub_state)
    assert (reply.in_reply_to, reply.words, reply.data) == (("c1",), "ok", {"model": "big"})
    assert (reply.command, reply.outcome, reply.turn, reply.tells_task) == ("model", "done", None, False)


def test_effects_are_in_the_snapshot_and_the_reply_tells_the_task() -> None:
    effects = (SetModel(model="big"), CreateSubTask(goal="look"))
    decision = commands.answer(recorded(PARKED), "c1", done(effects=effects, child_id="k"))
    assert (decision.snapshot.model, [row.task_id for row in decision.snapshot.children]) == ("big", ["k"])
    assert decision.drafts[-1].tells_task


@pytest.mark.parametrize("outcome", ["refused", "failed"])
def test_a_refusal_and_a_failure_change_nothing_and_their_verdicts_are_kept(outcome: str) -> None:
    decision = commands.answer(recorded(PARKED), "c1", done(outcome=outcome, verdicts=(NOTED,)))
    assert decision.snapshot == PARKED
    assert decision.verdicts == (NOTED,)
    assert decision.drafts[-1].outcome == outcome


@pytest.mark.parametrize("before", [PARKED, WORKING], ids=["parked", "working"])
def test_a_command_that_runs_later_waits_under_its_number_and_name(before: TaskSnapshot) -> None:
    decision = commands.queue(recorded(before), "deploy", "c1", ANN)
    waiting = Input(seq=before.head + 1, message_id="c1", sender=ANN, command="deploy")
    assert decision.snapshot == before.model_copy(update={"commands": (waiting,)})
    assert len(decision.drafts) == 1


def test_commands_wait_in_order_and_so_many_at_most() -> None:
    snapshot = PARKED
    for number in range(MAX_COMMANDS):
        snapshot = commands.queue(recorded(snapshot), "deploy", f"c{number}", ANN).snapshot
        snapshot = snapshot.model_copy(update={"head": snapshot.head + 1})
    assert [one.message_id for one in snapshot.commands] == [f"c{number}" for number in range(MAX_COMMANDS)]
    assert [one.seq for one in snapshot.commands] == sorted({one.seq for one in snapshot.commands})
    with pytest.raises(QueueFull):
        commands.queue(recorded(snapshot), "deploy", "one too many", ANN)


def test_a_command_that_waited_ends_once_with_its_reply() -> None:
    first, second = (Input(seq=n, message_id=f"c{n}", sender=ANN) for n in (6, 7))
    snapshot = WORKING.model_copy(update={"commands": (first, second)})
    decision = commands.end(snapshot, first, done(effects=(SetModel(model="big"),), verdicts=(NOTED,)))
    assert decision is not None
    assert decision.snapshot == WORKING.model_copy(update={"commands": (second,), "model": "big"})
    [reply] = decision.drafts
    assert (reply.in_reply_to, reply.state, reply.command) == (("c6",), TaskState.WORKING, "model")
    assert (decision.received_as, decision.verdicts) == ("command", (NOTED,))
    assert commands.end(decision.snapshot, first, done()) is None


@pytest.mark.parametrize("state", sorted(TERMINAL_STATES))
def test_a_command_does_nothing_to_a_task_that_ended_meanwhile(state: TaskState) -> None:
    waiting = Input(seq=6, message_id="c6", sender=ANN)
    ended = PARKED.model_copy(update={"state": state, "commands": (waiting,)})
    assert commands.end(ended, waiting, done(effects=(SetModel(model="big"),))) is None
