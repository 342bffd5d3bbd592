"""A task as A2A shows it, put together from its record and its events. Pure."""

import json
from collections.abc import Sequence
from typing import Any, Final

from tiny_harness.events import Event
from tiny_harness.ext import status, stream, supervision, task
from tiny_harness.ext.task import TaskText
from tiny_harness.states import TaskState
from tiny_harness.store import TaskRecord
from tiny_harness.task_data import result_artifact, supervision_data, task_data

Json = dict[str, Any]

SPOKEN: Final = frozenset({"task", "input", "reply"})
"""Kinds of events that carry a message."""

DEFAULT_HISTORY: Final = 100
MAX_HISTORY: Final = 1_000


def task_view(
    record: TaskRecord, events: Sequence[Event], history_length: int, acknowledged: Sequence[str] = ()
) -> Json:
    """Show a task as it was at the last of the given events.

    Args:
        record: The task; its data, all but its state, is shown as it is now.
        events: Its last events, in order, at least one.
        history_length: How many of its last messages to show.
        acknowledged: Who said that they have what they needed.
    """
    last = events[-1]
    body = _body(json.loads(last.payload))
    snapshot = record.snapshot
    metadata: Json = {
        task.KEY: task_data(snapshot, TaskText.model_validate_json(record.text)),
        stream.KEY: {"seq": last.seq},
    }
    why = body.get("metadata", {}).get(status.KEY)
    if why is not None:
        metadata[status.KEY] = why
    shown: Json = {
        "id": snapshot.task_id,
        "contextId": snapshot.context_id,
        "status": body["status"],
        "metadata": metadata,
    }
    supervised = supervision_data(snapshot, acknowledged)
    if supervised is not None:
        metadata[supervision.KEY] = supervised
    results = _results(record, last)
    if results:
        shown["artifacts"] = results
    history = messages(events)[-history_length:] if history_length else []
    if history:
        shown["history"] = history
    return shown


def _results(record: TaskRecord, last: Event) -> list[Json]:
    """Show what came of a task that ended with its result: the last words of whoever worked on it."""
    snapshot = record.snapshot
    if snapshot.lifecycle == "conversation" or snapshot.state is not TaskState.COMPLETED or last.kind != "reply":
        return []
    message = _body(json.loads(last.payload))["status"].get("message")
    return [result_artifact(snapshot.task_id, message["parts"])] if message else []


def messages(events: Sequence[Event]) -> list[Json]:
    """List the messages that events carry, oldest first: what participants said and what the agent answered."""
    found: list[Json] = []
    for event in events:
        payload = json.loads(event.payload)
        if event.kind == "task":
            found.extend(payload["task"].get("history", ()))
        elif event.kind == "input":
            found.append(payload["statusUpdate"]["metadata"][stream.KEY]["received"])
        elif event.kind in ("reply", "step") and "message" in payload["statusUpdate"]["status"]:
            found.append(payload["statusUpdate"]["status"]["message"])
    return found


def ends_turn_of(event: Event, message_id: str) -> bool:
    """Whether an event ends the turn that read a message, replies to it as a command, or ends the whole task."""
    if event.kind not in ("reply", "state", "task"):
        return False
    body = _body(json.loads(event.payload))
    return body["status"]["state"] in _TERMINAL or _replies_to(body, message_id)


def is_reply_to(event: Event, message_id: str) -> bool:
    """Whether an event carries the reply to a message."""
    return event.kind == "reply" and _replies_to(_body(json.loads(event.payload)), message_id)


def is_terminal(event: Event) -> bool:
    """Whether a task ends with this event."""
    return event.kind not in _STATELESS and _body(json.loads(event.payload))["status"]["state"] in _TERMINAL


def needs_somebody(event: Event) -> bool:
    """Whether a task has ended with this event, or waits for somebody."""
    if event.kind in _STATELESS:
        return False
    state = TaskState(_body(json.loads(event.payload))["status"]["state"])
    return state.is_terminal or state.is_interrupted


_STATELESS: Final = frozenset({"lost", "artifact"})
"""Kinds of events that say no state."""


_TERMINAL: Final = frozenset(
    {"TASK_STATE_COMPLETED", "TASK_STATE_FAILED", "TASK_STATE_CANCELED", "TASK_STATE_REJECTED"}
)


def _replies_to(body: Json, message_id: str) -> bool:
    return message_id in body.get("metadata", {}).get(stream.KEY, {}).get("in_reply_to", ())


def _body(payload: Json) -> Json:
    return payload.get("task") or payload["statusUpdate"]
