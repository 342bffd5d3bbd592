"""A message on its way into a task."""

import json
from typing import Any

import pytest

from tiny_harness.contracts import Delivery, NewTask, Sender, TaskSnapshot
from tiny_harness.errors import InvalidInput, TaskNotFound, UnsupportedContent
from tiny_harness.ext.task import AGENT_ID, Participant
from tiny_harness.intake import message_cause
from tiny_harness.states import TaskState
from tiny_harness_engine.core.incoming import Incoming, read_delivery


def delivery(*parts: dict[str, Any], sender: str = "ann", is_new: bool = False, **fields: Any) -> Delivery:
    message = {"messageId": "m1", "role": "ROLE_USER", "parts": list(parts) or [{"text": "hi"}], **fields}
    new_task = NewTask(context_id="c") if is_new else None
    return Delivery(sender=Sender(id=sender), message=json.dumps(message), new_task=new_task)


def incoming(*parts: dict[str, Any], **more: Any) -> Incoming:
    return read_delivery("t", delivery(*parts, **more))


def parked() -> TaskSnapshot:
    people = (Participant(id="ann", role="reporter"), Participant(id=AGENT_ID, kind="agent", role="assignee"))
    return TaskSnapshot(task_id="t", context_id="c", state=TaskState.INPUT_REQUIRED, participants=people)


@pytest.mark.parametrize("text", ["", "{", "nonsense", '"'])
def test_what_is_no_json_is_the_senders_mistake(text: str) -> None:
    with pytest.raises(InvalidInput):
        read_delivery("t", Delivery(sender=Sender(id="ann"), message=text))


def test_what_nobody_reads_is_refused() -> None:
    with pytest.raises(UnsupportedContent):
        incoming({"url": "http://127.0.0.1/"})


def test_its_commit_is_named_by_its_id_and_a_repeat_told_by_sender_and_content() -> None:
    one = incoming()
    assert one.cause == message_cause("m1")
    assert one.digest == incoming().digest
    assert one.digest != incoming(sender="bob").digest
    assert one.digest != incoming({"text": "ho"}).digest


def test_it_starts_a_task_or_goes_to_it() -> None:
    first = incoming(is_new=True).record(None)
    assert (first.received_as, first.snapshot.context_id, first.drafts[0].kind) == ("turn", "c", "task")
    later = incoming().record(parked())
    assert (later.received_as, later.drafts[0].kind) == ("turn", "input")
    with pytest.raises(TaskNotFound):
        incoming().record(None)


def test_a_command_is_recorded_as_one() -> None:
    for state, is_new in ((None, True), (parked(), False)):
        decision = incoming({"text": "/status"}, is_new=is_new).record(state, is_command=True)
        assert (decision.received_as, decision.snapshot.state) == ("command", TaskState.INPUT_REQUIRED)


def test_other_words_stand_in_the_place_of_its_own_and_it_stays_the_same_message() -> None:
    data, text = {"data": {"a": 1}}, {"text": "one"}
    before = incoming(text, data, {"text": "two"}, metadata={"k": "v"})
    changed = before.with_text("other")
    message = json.loads(changed.delivery.message)
    assert (message["parts"], message["metadata"]) == ([{"text": "other"}, data], {"k": "v"})
    assert changed.intake.text == "other"
    assert (changed.cause, changed.digest) == (before.cause, before.digest)


def test_the_same_words_change_nothing() -> None:
    before = incoming()
    assert before.with_text("hi") is before
