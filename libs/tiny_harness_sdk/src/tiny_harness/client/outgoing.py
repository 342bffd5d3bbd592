"""Builds the messages that a client sends, as A2A JSON. Pure."""

from typing import Any

from tiny_harness.envelope import MEDIA_TYPE, Action, WorkerUpdate, answer_part, control_part, update_part
from tiny_harness.ext import stream

Json = dict[str, Any]


def words(text: str, message_id: str, task_id: str | None, context_id: str | None, idempotency_key: str | None) -> Json:
    """Make a message of text. A first message always carries an idempotency key, by default its own id."""
    # A terminal can hand over halves of surrogate pairs, which no protocol carries.
    clean = text.encode("utf-8", "replace").decode()
    message = _message(message_id, {"text": clean}, task_id, context_id)
    if task_id is None:
        message["metadata"] = {stream.KEY: {"idempotency_key": idempotency_key or message_id}}
    return message


def control(action: Action, reason: str | None, message_id: str, task_id: str) -> Json:
    """Make a message that acts on a task."""
    return _message(message_id, control_part(action, reason), task_id, None)


def given(text: str, worker: str, message_id: str, context_id: str | None) -> Json:
    """Make a message that gives a new task to a worker."""
    message = words(text, message_id, None, context_id, None)
    message["parts"].append({"data": {"kind": "task", "payload": {"worker": worker}}, "mediaType": MEDIA_TYPE})
    return message


def update(said: WorkerUpdate, message_id: str, task_id: str) -> Json:
    """Make a message in which a worker says how its task stands."""
    return _message(message_id, update_part(said), task_id, None)


def answer(request_id: str, value: str, reason: str | None, message_id: str, task_id: str) -> Json:
    """Make a message that answers a question."""
    part = answer_part(request_id, value)
    if reason:
        part["data"]["reason"] = reason
    return _message(message_id, part, task_id, None)


def patch(payload: Json, message_id: str, task_id: str) -> Json:
    """Make a message that changes a task's data."""
    part = {"data": {"kind": "task", "payload": payload}, "mediaType": MEDIA_TYPE}
    return _message(message_id, part, task_id, None)


def _message(message_id: str, part: Json, task_id: str | None, context_id: str | None) -> Json:
    message: Json = {"messageId": message_id, "role": "ROLE_USER", "parts": [part]}
    if task_id is not None:
        message["taskId"] = task_id
    if context_id is not None:
        message["contextId"] = context_id
    return message
