"""What a stand-in tells its parent, and how long it bears an agent that does not answer."""

from datetime import UTC, datetime, timedelta

import pytest

from tiny_harness.contracts import Child
from tiny_harness.states import TaskState
from tiny_harness_engine.core.remote import Fault, FaultKind, Seen, StandIn, bear, hear

NOW = datetime(2030, 1, 1, tzinfo=UTC)
NEW = StandIn(parent="p", child=Child(task_id="c", state=TaskState.SUBMITTED, agent="desk", origin=(1, 1, 0)))
WORKING = Seen(remote_id="r", state=TaskState.WORKING, words="so far")
ASKS = Seen(remote_id="r", state=TaskState.INPUT_REQUIRED, sub_state="awaiting-answer", message_id="1", words="which?")


def after(*seen: Seen) -> StandIn:
    stand_in = NEW
    for each in seen:
        stand_in, _ = hear(stand_in, each)
    return stand_in


def test_a_change_is_told_with_the_next_number_and_the_remote_id() -> None:
    stand_in, change = hear(NEW, WORKING)
    assert change is not None
    assert (change.task_id, change.seq, change.state, change.remote_id) == ("c", 1, TaskState.WORKING, "r")
    assert (change.words, change.is_news) == ("", False)
    assert stand_in.child.seq == 1
    _, ended = hear(stand_in, Seen(remote_id="r", state=TaskState.COMPLETED, words="done"))
    assert ended is not None
    assert (ended.seq, ended.words) == (2, "done")


def test_the_same_again_is_not_told() -> None:
    assert hear(after(WORKING), WORKING)[1] is None
    assert hear(after(ASKS), ASKS)[1] is None
    other_message = WORKING.model_copy(update={"message_id": "2"})
    assert hear(after(WORKING), other_message)[1] is None


def test_the_end_of_a_turn_is_news_with_its_words() -> None:
    _, change = hear(after(WORKING), ASKS)
    assert change is not None
    assert (change.is_news, change.words, change.sub_state) == (True, "which?", "awaiting-answer")


def test_the_end_of_the_next_turn_is_news_although_the_state_is_the_same() -> None:
    _, change = hear(after(WORKING, ASKS), ASKS.model_copy(update={"message_id": "2", "words": "and where?"}))
    assert change is not None
    assert (change.is_news, change.words) == (True, "and where?")


def test_another_sub_state_of_the_same_turn_is_told_and_no_news() -> None:
    _, change = hear(after(WORKING, ASKS), ASKS.model_copy(update={"sub_state": "awaiting-budget"}))
    assert change is not None
    assert (change.is_news, change.words) == (False, "")


def test_waiting_for_a_sign_in_is_shown_and_no_news() -> None:
    _, change = hear(after(WORKING), Seen(remote_id="r", state=TaskState.AUTH_REQUIRED, words="sign in"))
    assert change is not None
    assert (change.state, change.is_news, change.words) == (TaskState.AUTH_REQUIRED, False, "")


@pytest.mark.parametrize("kind", ["passing", "doubtful", "gone"])
def test_an_agent_is_borne_with_for_a_while(kind: FaultKind) -> None:
    fault = Fault(kind=kind, reason="it is away")
    for begun in (NEW, after(WORKING)):
        bearing, change = bear(begun, fault, NOW, 10)
        assert change is None
        bearing, change = bear(bearing, fault, NOW + timedelta(seconds=9), 10)
        assert change is None
        _, change = bear(bearing, fault, NOW + timedelta(seconds=10), 10)
        assert change is not None
        assert change.state is TaskState.FAILED
        assert change.words == "The agent desk did not finish it: it is away."


def test_an_answer_starts_the_clock_anew() -> None:
    fault = Fault(kind="passing", reason="it is away")
    bearing, _ = bear(after(WORKING), fault, NOW, 10)
    steady, _ = hear(bearing, WORKING)
    assert steady.failing_since is None
    assert bear(steady, fault, NOW + timedelta(seconds=20), 10)[1] is None


def test_what_cannot_be_helped_fails_at_once_before_the_agent_has_the_work_and_not_after() -> None:
    fault = Fault(kind="final", reason="no")
    assert bear(NEW, fault, NOW, 10)[1] is not None
    assert bear(after(WORKING), fault, NOW, 10)[1] is None


def test_a_doubt_whether_the_brief_arrived_stays_until_the_agent_has_answered() -> None:
    doubtful, passing = Fault(kind="doubtful", reason="x"), Fault(kind="passing", reason="x")
    assert not bear(NEW, passing, NOW, 10)[0].is_again
    doubting = bear(NEW, doubtful, NOW, 10)[0]
    assert doubting.is_again
    assert bear(doubting, passing, NOW, 10)[0].is_again
    assert not hear(doubting, WORKING)[0].is_again


def test_a_child_that_failed_keeps_the_id_that_it_had() -> None:
    _, change = bear(after(WORKING), Fault(kind="gone", reason="x"), NOW, 0)
    assert change is not None
    assert change.remote_id == "r"
