"""A2A JSON as views and events: what we know, what we skip, what may be sloppy."""

import json
from datetime import UTC, datetime
from typing import Any

from tiny_harness.client import DeltaText, Received, Replied, StateChanged, TaskShown, TaskView, fold
from tiny_harness.client.decode import decode_event, decode_task
from tiny_harness.ext import status, stream, task
from tiny_harness.states import TaskState

ANN = {"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": "hello"}]}
AGENT = {"messageId": "a1", "role": "ROLE_AGENT", "parts": [{"text": "one"}, {"data": {}}, {"text": "two"}]}


def update(state: str, data: dict[str, Any], message: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    body: dict[str, Any] = {"state": state, "timestamp": "2026-01-02T03:04:05.678Z"}
    if message:
        body["message"] = message
    metadata = {stream.KEY: data, **more}
    return {"statusUpdate": {"taskId": "t", "contextId": "c", "status": body, "metadata": metadata}}


def test_a_task_event_shows_the_whole_task() -> None:
    people = [{"id": "ann", "kind": "human", "role": "reporter"}]
    event = decode_event(
        {
            "task": {
                "id": "t",
                "contextId": "c",
                "status": {"state": "TASK_STATE_WORKING", "timestamp": "2026-01-02T03:04:05.678Z"},
                "history": [ANN],
                "metadata": {task.KEY: {"name": "Hi", "participants": people, "plan": 3}, stream.KEY: {"seq": 1.0}},
            }
        }
    )
    assert isinstance(event, TaskShown)
    view = event.view
    assert (event.seq, view.task_id, view.context_id, view.name) == (1, "t", "c", "Hi")
    assert view.updated_at == datetime(2026, 1, 2, 3, 4, 5, 678_000, UTC)
    assert [message.text for message in view.messages] == ["hello"]
    assert [person.id for person in view.participants] == ["ann"]


def test_a_message_of_a_participant_is_received() -> None:
    event = decode_event(update("TASK_STATE_WORKING", {"seq": 2.0, "received": ANN, "received_as": "queued"}))
    assert isinstance(event, Received)
    assert (event.seq, event.received_as, event.message.role, event.message.text) == (2, "queued", "user", "hello")


def test_a_reply_ends_the_turn_of_the_messages_that_it_names() -> None:
    parked = {status.KEY: {"sub_state": "awaiting-next-message"}}
    event = decode_event(update("TASK_STATE_INPUT_REQUIRED", {"seq": 3, "in_reply_to": ["m1"]}, AGENT, **parked))
    assert isinstance(event, Replied)
    assert event.in_reply_to == ("m1",)
    assert (event.message.role, event.message.text) == ("agent", "one\n\ntwo")
    assert (event.state, event.sub_state) == (TaskState.INPUT_REQUIRED, "awaiting-next-message")


def test_a_control_changes_the_state_without_words() -> None:
    event = decode_event(update("TASK_STATE_COMPLETED", {"seq": 4, "received": ANN, "received_as": "control"}))
    assert isinstance(event, StateChanged)
    assert event.caused_by == "m1"


def test_a_change_of_data_tells_the_new_name() -> None:
    event = decode_event(update("TASK_STATE_WORKING", {"seq": 4, "received": ANN}, **{task.KEY: {"name": "New"}}))
    assert isinstance(event, Received)
    assert (event.name, event.received_as) == ("New", None)


def test_a_delta_is_read_although_its_numbers_are_doubles() -> None:
    delta = {"message_id": "a", "turn": 1.0, "step": 1.0, "attempt": 2.0, "index": 0.0, "text": "x"}
    event = decode_event(update("TASK_STATE_WORKING", {"delta": delta}))
    assert event == DeltaText(message_id="a", turn=1, step=1, attempt=2, index=0, text="x")


def test_what_is_not_known_is_skipped() -> None:
    assert decode_event({"artifactUpdate": {}}) is None
    assert decode_event({}) is None
    assert decode_event(update("TASK_STATE_DREAMING", {"seq": 1})) is None
    assert decode_event({"task": {"id": "t"}}) is None


def test_a_server_without_our_extensions_is_understood() -> None:
    body = {"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_INPUT_REQUIRED", "message": AGENT}}
    view = decode_task(body)
    assert view is not None
    assert (view.name, view.sub_state, view.updated_at) == ("", None, None)
    assert [message.message_id for message in view.messages] == ["a1"]


def test_malformed_data_of_our_extensions_reads_as_none() -> None:
    junk: dict[str, Any] = {stream.KEY: {"seq": "many"}, task.KEY: {"name": 7}, status.KEY: "odd"}
    body = {"id": "t", "status": {"state": "TASK_STATE_INPUT_REQUIRED", "timestamp": "?"}, "metadata": junk}
    event = decode_event(json.loads(json.dumps({"task": body})))
    assert isinstance(event, TaskShown)
    assert (event.seq, event.view.name, event.view.sub_state, event.view.updated_at) == (None, "", None, None)


def test_folding_an_event_twice_changes_nothing() -> None:
    view = TaskView("t", "c", TaskState.WORKING, name="Hi")
    event = decode_event(update("TASK_STATE_INPUT_REQUIRED", {"seq": 3, "in_reply_to": ["m1"]}, AGENT))
    assert event is not None
    once = fold(view, event)
    assert once is not None
    assert fold(once, event) == once
    assert [message.text for message in once.messages] == ["one\n\ntwo"]
    assert (once.name, once.state) == ("Hi", TaskState.INPUT_REQUIRED)
