"""A task as A2A shows it."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from tiny_harness.contracts import TaskSnapshot
from tiny_harness.events import Event, EventKind
from tiny_harness.ext import status, stream, task
from tiny_harness.ext.task import Participant
from tiny_harness.states import TaskState
from tiny_harness.store import TaskRecord
from tiny_harness_gateway.views import ends_turn_of, is_terminal, messages, task_view

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def message(text: str, role: str = "ROLE_USER") -> dict[str, Any]:
    return {"messageId": text, "role": role, "parts": [{"text": text}]}


def event(seq: int, kind: EventKind, state: str, *, words: Any = None, **data: Any) -> Event:
    body: dict[str, Any] = {"state": f"TASK_STATE_{state}", "timestamp": "2026-01-01T00:00:00.000Z"}
    metadata = {stream.KEY: {"seq": seq, **data}}
    if kind == "task":
        payload = {"task": {"id": "t", "status": body, "history": [message("one")], "metadata": metadata}}
    else:
        if words:
            body["message"] = words
        payload = {"statusUpdate": {"taskId": "t", "status": body, "metadata": metadata}}
    return Event("t", seq, "", kind, json.dumps(payload))


LOG = [
    event(1, "task", "WORKING", turn=1),
    event(2, "input", "WORKING", received=message("two"), received_as="queued"),
    event(3, "reply", "WORKING", words=message("re: one", "ROLE_AGENT"), in_reply_to=["one"]),
    event(4, "state", "INPUT_REQUIRED", received=message("stop"), received_as="control", in_reply_to=["two"]),
]

RECORD = TaskRecord(
    TaskSnapshot(
        task_id="t",
        context_id="c",
        state=TaskState.INPUT_REQUIRED,
        participants=(Participant(id="ann", role="reporter"),),
    ),
    '{"name": "One"}',
    NOW,
    NOW,
)


def test_history_is_what_people_and_the_agent_said_oldest_first() -> None:
    assert [found["messageId"] for found in messages(LOG)] == ["one", "two", "re: one"]


@pytest.mark.parametrize(("length", "shown"), [(0, None), (1, ["re: one"]), (9, ["one", "two", "re: one"])])
def test_a_task_shows_as_much_history_as_wanted(length: int, shown: list[str] | None) -> None:
    view = task_view(RECORD, LOG, length)
    history = view.get("history")
    assert (history and [found["messageId"] for found in history]) == shown


def test_a_task_is_shown_as_it_was_at_its_last_given_event() -> None:
    assert task_view(RECORD, LOG[:3], 0)["status"]["state"] == "TASK_STATE_WORKING"
    view = task_view(RECORD, LOG, 0)
    assert view["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    assert view["metadata"][stream.KEY] == {"seq": 4}
    assert view["metadata"][task.KEY]["name"] == "One"
    assert view["metadata"][task.KEY]["participants"] == [{"id": "ann", "kind": "human", "role": "reporter"}]
    assert status.KEY not in view["metadata"]


def test_a_turn_ends_for_the_messages_that_it_read_and_for_all_with_the_task() -> None:
    assert [ends_turn_of(found, "one") for found in LOG] == [False, False, True, False]
    assert [ends_turn_of(found, "two") for found in LOG] == [False, False, False, True]
    ended = event(5, "state", "CANCELED")
    assert ends_turn_of(ended, "anything")
    assert [is_terminal(found) for found in [*LOG, ended]] == [False] * 4 + [True]


def test_numbers_that_were_lost_end_nothing() -> None:
    lost = Event("t", 5, "", "lost", '{"lost":{"from":4,"to":5}}')
    assert not ends_turn_of(lost, "one")
    assert not is_terminal(lost)
