"""When a sent message's turn is over, told from what was seen of it."""

from typing import Any

from tiny_harness.client import (
    CommandAnswer,
    MessageView,
    Received,
    Replied,
    StateChanged,
    Stepped,
    TaskShown,
    TaskView,
)
from tiny_harness.client.answering import Answering
from tiny_harness.client.outgoing import answer, control, patch, words
from tiny_harness.client.turn import Turn
from tiny_harness.ext import stream
from tiny_harness.ext.stream import ToolUse
from tiny_harness.ext.supervision import SupervisionData
from tiny_harness.intake import read_message
from tiny_harness.states import TaskState

COMMON: dict[str, Any] = {"task_id": "t", "context_id": "c"}
MINE = MessageView("m", "user", "hello")


def turn(*, has_words: bool = True) -> Turn:
    return Turn(words("hello", "m", "t", None, None), has_words=has_words)


def received(seq: int, received_as: str, message: MessageView = MINE) -> Received:
    return Received(**COMMON, state=TaskState.WORKING, seq=seq, message=message, received_as=received_as)


def replied(seq: int, to: str, state: TaskState = TaskState.INPUT_REQUIRED) -> Replied:
    return Replied(**COMMON, state=state, seq=seq, in_reply_to=(to,), message=MessageView("a", "agent", "hi"))


def test_a_message_is_resent_until_its_receipt_and_then_resumed() -> None:
    seen = turn()
    assert seen.known_task is None
    assert seen.see(received(5, "turn"))
    assert seen.known_task == "t"
    assert not seen.is_over


def test_a_queued_message_is_done_with_its_own_turn_only() -> None:
    seen = turn()
    seen.see(received(5, "queued"))
    seen.see(replied(6, "other", TaskState.WORKING))
    assert not seen.is_over
    seen.see(replied(7, "m"))
    assert seen.is_over


def test_what_was_seen_is_not_seen_again() -> None:
    seen = turn()
    assert seen.see(received(5, "turn"))
    assert not seen.see(received(5, "turn"))
    assert not seen.see(replied(4, "m"))
    assert not seen.is_over


def test_a_task_that_has_the_message_and_waits_is_done_with_it() -> None:
    for state, is_over in ((TaskState.WORKING, False), (TaskState.INPUT_REQUIRED, True), (TaskState.FAILED, True)):
        seen = turn()
        seen.see(TaskShown(view=TaskView("t", "c", state, messages=(MINE,)), seq=9))
        assert (seen.known_task, seen.is_over) == ("t", is_over)


def test_a_step_does_not_end_a_turn_and_a_question_does() -> None:
    seen = turn()
    seen.see(received(5, "turn"))
    uses = (ToolUse(call_id="c", name="orders.look"),)
    said = MessageView("s", "agent", "let me see")
    assert seen.see(Stepped(**COMMON, state=TaskState.WORKING, seq=6, tool_calls=uses, message=said, read=("m",)))
    assert not seen.is_over
    asked: dict[str, Any] = {"sub_state": "awaiting-approval", "request_id": "1.2.0", "in_reply_to": ("m",)}
    words = MessageView("q", "agent", "May I?")
    seen.see(Replied(**COMMON, state=TaskState.INPUT_REQUIRED, seq=7, message=words, **asked))
    assert seen.is_over


def test_the_reply_after_a_question_ends_the_sends_of_its_turn_too() -> None:
    late = turn()
    late.see(received(5, "queued"))
    question = MessageView("q", "agent", "May I?")
    asked: dict[str, Any] = {"sub_state": "awaiting-approval", "request_id": "1.2.0", "in_reply_to": ("other",)}
    late.see(Replied(**COMMON, state=TaskState.INPUT_REQUIRED, seq=6, message=question, **asked))
    late.see(StateChanged(**COMMON, state=TaskState.WORKING, seq=7, caused_by="answer"))
    assert not late.is_over
    late.see(replied(8, "m"))
    assert late.is_over


def answering() -> Answering:
    return Answering(answer("1.2.0", "approve", None, "m", "t"))


def test_an_answer_is_resent_until_it_is_taken_and_then_follows_its_turn() -> None:
    seen = answering()
    assert seen.known_task is None
    taken = StateChanged(**COMMON, state=TaskState.WORKING, seq=6, caused_by="m")
    assert seen.see(taken)
    assert not seen.see(taken)
    assert (seen.known_task, seen.is_over, seen.is_told()) == ("t", False, False)
    seen.see(received(7, "queued", MessageView("other", "user", "by the way")))
    seen.see(answered(8, "command"))
    assert not seen.is_over
    seen.see(replied(9, "other", TaskState.WORKING))
    assert seen.is_over


def test_another_question_or_the_end_of_the_task_ends_an_answer_too() -> None:
    seen = answering()
    seen.see(StateChanged(**COMMON, state=TaskState.WORKING, seq=6, caused_by="m"))
    asked: dict[str, Any] = {"sub_state": "awaiting-budget", "request_id": "budget.1"}
    seen.see(StateChanged(**COMMON, state=TaskState.INPUT_REQUIRED, seq=7, **asked))
    assert seen.is_over
    ended = answering()
    ended.see(StateChanged(**COMMON, state=TaskState.CANCELED, seq=6))
    assert ended.is_over
    shown = answering()
    shown.see(StateChanged(**COMMON, state=TaskState.WORKING, seq=6, caused_by="m"))
    shown.see(TaskShown(view=TaskView("t", "c", TaskState.INPUT_REQUIRED), seq=9))
    assert shown.is_over


def test_the_end_of_the_task_is_the_end_of_the_turn() -> None:
    seen = turn()
    seen.see(received(5, "turn"))
    seen.see(StateChanged(**COMMON, state=TaskState.CANCELED, seq=6))
    assert seen.is_over


def test_a_closed_stream_tells_a_waiting_task_of_a_server_without_receipts() -> None:
    seen = turn()
    assert not seen.is_told()
    seen.see(StateChanged(**COMMON, state=TaskState.WORKING))
    assert not seen.is_told()
    seen.see(Replied(**COMMON, state=TaskState.INPUT_REQUIRED, message=MessageView("a", "agent", "hi")))
    assert seen.is_told()


def test_a_control_is_done_when_its_effect_is_seen_or_its_stream_ends() -> None:
    seen = turn(has_words=False)
    assert seen.is_told()
    seen.see(StateChanged(**COMMON, state=TaskState.INPUT_REQUIRED, seq=6, caused_by="m"))
    assert seen.is_over


def test_what_we_send_is_understood_by_the_harness() -> None:
    first = words("hello", "m", None, "ctx", None)
    assert stream.read(first["metadata"]).idempotency_key == "m"
    assert first["contextId"] == "ctx"
    assert "metadata" not in words("hello", "m", "t", None, "ignored")
    assert read_message(first).text == "hello"
    assert read_message(words("half a pair: \ud83d", "m", None, None, None)).text == "half a pair: ?"
    done = read_message(control("complete", "because", "m", "t"))
    assert (done.control, done.reason) == ("complete", "because")
    refused = read_message(answer("1.2.0", "refuse", "too much", "m", "t"))
    assert (refused.control, refused.request_id, refused.value) == ("answer", "1.2.0", "refuse")
    assert refused.reason == "too much"
    renamed = read_message(patch({"name": "New"}, "m", "t"))
    assert renamed.patch is not None
    assert renamed.patch.name == "New"


SLASH = MessageView("m", "user", "/status now")
ANSWER = MessageView("r", "agent", "all is well", CommandAnswer("status", "done"))


def command() -> Turn:
    return Turn(words(SLASH.text, "m", "t", None, None), has_words=True)


def answered(seq: int, to: str = "m") -> Replied:
    return Replied(**COMMON, state=TaskState.WORKING, seq=seq, in_reply_to=(to,), message=ANSWER)


def test_a_command_is_done_with_its_own_reply_also_while_a_turn_runs() -> None:
    seen = command()
    seen.see(received(5, "command", SLASH))
    assert (seen.known_task, seen.is_over) == ("t", False)
    seen.see(answered(6, "other"))
    seen.see(replied(7, "words of another"))
    assert not seen.is_over
    seen.see(answered(8))
    assert seen.is_over


def test_the_reply_to_a_command_does_not_end_the_turn_that_runs() -> None:
    seen = turn()
    seen.see(received(5, "turn"))
    seen.see(received(6, "command", MessageView("c", "user", "/status")))
    seen.see(answered(7, "c"))
    assert not seen.is_over
    seen.see(replied(8, "m"))
    assert seen.is_over


def test_a_waiting_task_that_has_a_command_has_not_answered_it_yet() -> None:
    for received_as in ("command", None):
        seen = command()
        parked = TaskView("t", "c", TaskState.INPUT_REQUIRED, messages=(SLASH,))
        seen.see(TaskShown(view=parked, seq=5, received_as=received_as))
        assert (seen.known_task, seen.is_over) == ("t", False)
        seen.see(answered(6))
        assert seen.is_over


def test_a_task_that_shows_the_answer_to_a_command_is_done_with_it_whatever_runs() -> None:
    for state in (TaskState.WORKING, TaskState.INPUT_REQUIRED):
        seen = command()
        seen.see(TaskShown(view=TaskView("t", "c", state, messages=(SLASH, ANSWER)), seq=9))
        assert seen.is_over


def test_a_text_of_a_commands_shape_that_is_none_is_done_with_its_turn() -> None:
    seen = command()
    shown = (SLASH, MessageView("a", "agent", "I know no such thing"))
    seen.see(TaskShown(view=TaskView("t", "c", TaskState.INPUT_REQUIRED, messages=shown), seq=9))
    assert seen.is_over
    cut = command()
    cut.see(TaskShown(view=TaskView("t", "c", TaskState.INPUT_REQUIRED, messages=(SLASH,)), received_as="turn"))
    assert cut.is_over


def test_a_closed_stream_does_not_tell_the_end_of_a_command() -> None:
    seen = command()
    seen.see(TaskShown(view=TaskView("t", "c", TaskState.INPUT_REQUIRED, messages=(SLASH,)), received_as="command"))
    assert not seen.is_told()


def test_a_stream_that_a_stopping_gateway_closes_does_not_tell_the_end_of_a_command_to_a_waiting_task() -> None:
    seen = command()
    seen.see(TaskShown(view=TaskView("t", "c", TaskState.INPUT_REQUIRED, messages=(SLASH,)), seq=5))
    assert (seen.known_task, seen.is_told()) == ("t", False)
    seen.see(replied(6, "words of another"))
    assert not seen.is_told()
    seen.see(answered(7))
    assert seen.is_over


def test_a_closed_stream_tells_the_end_of_words_to_a_supervised_task_whatever_their_shape() -> None:
    seen = command()
    place = SupervisionData(worker="bot")
    seen.see(TaskShown(view=TaskView("t", "c", TaskState.INPUT_REQUIRED, messages=(SLASH,), supervision=place), seq=5))
    assert seen.is_told()
