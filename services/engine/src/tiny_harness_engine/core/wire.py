"""The wire JSON of an event: a finished A2A StreamResponse, made once and stored (DESIGN: how things travel). Pure."""

import json
from datetime import datetime
from typing import Any

from tiny_harness.contracts import TaskSnapshot
from tiny_harness.ext import commands, status, stream, supervision, task
from tiny_harness.ext.task import TaskText
from tiny_harness.task_data import result_artifact, supervision_data, task_data
from tiny_harness_engine.core.drafts import Draft
from tiny_harness_engine.core.questions import KINDS

Json = dict[str, Any]


def render(draft: Draft, snapshot: TaskSnapshot, text: TaskText, message: Json | None, seq: int, at: datetime) -> str:
    """Make an event's payload.

    Args:
        draft: What happened.
        snapshot: The task afterwards.
        text: The task's words afterwards.
        message: The agent's message that the event carries, if any.
        seq: The event's number.
        at: When it was committed.
    """
    received = json.loads(draft.received) if draft.received else None
    body: Json = {"state": draft.state.value, "timestamp": timestamp(at)}
    if message:
        body["message"] = message
    metadata = _metadata(draft, snapshot, seq)
    if draft.tells_task:
        metadata[task.KEY] = task_data(snapshot, text)
    supervised = supervision_data(snapshot)
    if supervised is not None:
        metadata[supervision.KEY] = supervised
    if draft.kind == "task":
        ids = {"id": snapshot.task_id, "contextId": snapshot.context_id}
        history = [] if received is None else [received]
        return _dump({"task": {**ids, "status": body, "history": history, "metadata": metadata}})
    if received is not None:
        metadata[stream.KEY]["received"] = received
    ids = {"taskId": snapshot.task_id, "contextId": snapshot.context_id}
    if draft.kind == "artifact":
        result = result_artifact(snapshot.task_id, message["parts"] if message else ())
        return _dump({"artifactUpdate": {**ids, "artifact": result, "lastChunk": True, "metadata": metadata}})
    return _dump({"statusUpdate": {**ids, "status": body, "metadata": metadata}})


def render_delta(task_id: str, context_id: str, delta: stream.Delta) -> str:
    """Make the payload of a piece of a reply that is still being written."""
    metadata = {stream.KEY: {"delta": delta.model_dump()}}
    update = {"taskId": task_id, "contextId": context_id, "status": {"state": "TASK_STATE_WORKING"}}
    return _dump({"statusUpdate": {**update, "metadata": metadata}})


def agent_message(snapshot: TaskSnapshot, message_id: str, text: str) -> Json:
    """Make a message of the agent's."""
    return {
        "messageId": message_id,
        "contextId": snapshot.context_id,
        "taskId": snapshot.task_id,
        "role": "ROLE_AGENT",
        "parts": [{"text": text}],
    }


def own_message(snapshot: TaskSnapshot, message_id: str, draft: Draft) -> Json:
    """Make a message of the harness's own; a command's reply says so itself, for it outlives its event in histories."""
    message = agent_message(snapshot, message_id, draft.words or "")
    if draft.data is not None:
        message["parts"].append({"data": draft.data, "mediaType": "application/json"})
    if draft.command is not None:
        message["metadata"] = {commands.KEY: _command(draft)}
    return message


def timestamp(at: datetime) -> str:
    """Write a time as A2A does: UTC, milliseconds, `Z`."""
    return at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at.microsecond // 1000:03d}Z"


def _metadata(draft: Draft, snapshot: TaskSnapshot, seq: int) -> Json:
    data: Json = {"seq": seq}
    if draft.turn is not None:
        data["turn"] = draft.turn
    if draft.step is not None and draft.kind in ("step", "state"):
        data["step"] = draft.step
    if draft.kind == "step":
        data["read"] = list(draft.read)
        data["tool_calls"] = [use.model_dump() for use in draft.tool_calls]
    if draft.received_as is not None:
        data["received_as"] = draft.received_as
    if draft.in_reply_to:
        data["in_reply_to"] = list(draft.in_reply_to)
    if draft.refused:
        data["refused"] = list(draft.refused)
    metadata: Json = {stream.KEY: data}
    if draft.command is not None:
        metadata[commands.KEY] = _command(draft)
    if draft.sub_state is not None:
        metadata[status.KEY] = _status(draft, snapshot)
    return metadata


def _status(draft: Draft, snapshot: TaskSnapshot) -> Json:
    """Say why the task waits. A question stays open, and is told with every event until it is answered."""
    asked: Json = {"sub_state": draft.sub_state}
    open_one = snapshot.question
    request_id = draft.question or (open_one.request_id if open_one else None)
    choices = draft.choices or (KINDS[open_one.kind][1] if open_one else ())
    if request_id is not None:
        asked["request_id"] = request_id
    if choices:
        asked["choices"] = list(choices)
    return asked


def _command(draft: Draft) -> Json:
    return {"name": draft.command, "outcome": draft.outcome}


def _dump(payload: Json) -> str:
    return json.dumps(payload, ensure_ascii=False, separators=(",", ":"))
