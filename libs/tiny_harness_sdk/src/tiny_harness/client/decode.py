"""Reads A2A JSON into views and events. Pure; the only file that knows the shapes on the wire.

Lenient: what this version does not know is skipped, and numbers may arrive as doubles.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

from pydantic import ValidationError

from tiny_harness.client.events import DeltaText, Received, Replied, StateChanged, Stepped, TaskEvent, TaskShown
from tiny_harness.client.views import ASKING, CommandAnswer, MessageView, Question, TaskView
from tiny_harness.contracts import Usage
from tiny_harness.ext import commands, status, stream, supervision, task
from tiny_harness.ext.commands import CommandOffer, CommandsData
from tiny_harness.ext.stream import StreamData
from tiny_harness.ext.supervision import SupervisionData
from tiny_harness.ext.task import TaskData
from tiny_harness.intake import CommandCall, read_command
from tiny_harness.states import TaskState

Json = dict[str, Any]


def decode_event(payload: Json) -> TaskEvent | None:
    """Read a StreamResponse; `None` if it is of a kind or in a state that this version does not know."""
    for kind, read in _READERS.items():
        if kind in payload:
            return read(payload[kind])
    return None


def decode_task(body: Json) -> TaskView | None:
    """Read a Task; `None` if its state is not known."""
    state = _state(body)
    if state is None:
        return None
    metadata = body.get("metadata")
    data = _task_data(metadata)
    messages = [decode_message(message) for message in body.get("history", ())]
    spoken = decode_message(body["status"]["message"]) if "message" in body["status"] else None
    if spoken and all(message.message_id != spoken.message_id for message in messages):
        messages.append(spoken)
    asked = _asked(state, metadata)
    return TaskView(
        task_id=body.get("id", ""),
        context_id=body.get("contextId", ""),
        state=state,
        sub_state=asked["sub_state"],
        name=data.name or "",
        updated_at=_time(body),
        messages=tuple(message for message in messages if message.text),
        participants=data.participants,
        parent_tasks=data.parent_tasks,
        sub_tasks=data.sub_tasks,
        model=data.model,
        effort=data.reasoning_effort,
        plan=data.plan,
        usage=decode_usage(data.usage),
        question=_question(asked, messages),
        supervision=_supervision(metadata),
    )


def decode_message(message: Json, metadata: Json | None = None) -> MessageView:
    """Read a Message; what its event says of a command in `metadata` counts as if the message said it."""
    words = [part["text"] for part in message.get("parts", ()) if isinstance(part.get("text"), str)]
    message_id, text = message.get("messageId", ""), "\n\n".join(words)
    if message.get("role") != "ROLE_AGENT":
        return MessageView(message_id, "user", text)
    if commands.is_literal(message):
        return MessageView(message_id, "note", text)
    return MessageView(message_id, "agent", text, _answer(message, metadata))


def decode_usage(found: Json | None) -> Usage | None:
    """Read what a task has used; `None` if it does not say so."""
    try:
        return Usage.model_validate(found) if found else None
    except ValidationError:
        return None


def decode_offers(params: Json) -> tuple[CommandOffer, ...]:
    """Read the `commands` extension's params on a card; an entry that is no command is left out."""
    found = params.get("commands")
    offers = [_offer(entry) for entry in (found if isinstance(found, list) else ())]
    return tuple(offer for offer in offers if offer)


def _read_task(body: Json) -> TaskEvent | None:
    view = decode_task(body)
    data = _stream_data(body.get("metadata"))
    return TaskShown(view=view, seq=data.seq, received_as=data.received_as) if view else None


def _read_update(body: Json) -> TaskEvent | None:
    state, metadata = _state(body), body.get("metadata")
    data = _stream_data(metadata)
    if data.delta is not None:
        return DeltaText(**data.delta.model_dump())
    if state is None:
        return None
    common: Json = {
        "task_id": body.get("taskId", ""),
        "context_id": body.get("contextId", ""),
        "state": state,
        **_asked(state, metadata),
        "in_reply_to": data.in_reply_to,
        "seq": data.seq,
        "at": _time(body),
        "data": _task_data(metadata) if task.KEY in (metadata or {}) else None,
        "supervision": _supervision(metadata),
    }
    spoken = body["status"].get("message")
    return _change(common, data, decode_message(spoken, metadata) if spoken else None)


def _change(common: Json, data: StreamData, spoken: MessageView | None) -> TaskEvent:
    received = decode_message(data.received) if data.received else None
    if received and data.received_as != "control":
        return Received(**common, message=received, received_as=data.received_as)
    if data.tool_calls:
        return Stepped(**common, message=spoken, tool_calls=data.tool_calls, read=data.read)
    if spoken:
        return Replied(**common, message=spoken, refused=data.refused)
    return StateChanged(**common, caused_by=received.message_id if received else None)


_READERS: dict[str, Callable[[Json], TaskEvent | None]] = {"task": _read_task, "statusUpdate": _read_update}


def _state(body: Json) -> TaskState | None:
    try:
        return TaskState((body.get("status") or {}).get("state"))
    except ValueError:
        return None


def _asked(state: TaskState, metadata: Json | None) -> Json:
    """Read why a task waits, and for what: `sub_state`, `request_id` and `choices`."""
    found = (metadata or {}).get(status.KEY)
    data: Json = found if isinstance(found, dict) and state is TaskState.INPUT_REQUIRED else {}
    words = {key: data[key] if isinstance(data.get(key), str) else None for key in ("sub_state", "request_id")}
    listed: Any = data.get("choices")
    choices = tuple(choice for choice in (listed if isinstance(listed, list) else ()) if isinstance(choice, str))
    return {**words, "choices": choices}


def _question(asked: Json, messages: list[MessageView]) -> Question | None:
    """Find what a task asks; its words are the agent's last ones."""
    if asked["sub_state"] not in ASKING and asked["request_id"] is None:
        return None
    said = [message for message in messages if message.role == "agent" and message.command is None]
    words = said[-1].text if said else ""
    return Question(asked["sub_state"] or "", words, asked["request_id"], asked["choices"])


def _supervision(metadata: Json | None) -> SupervisionData | None:
    found = (metadata or {}).get(supervision.KEY)
    try:
        return None if found is None else SupervisionData.model_validate(found)
    except ValidationError:
        return None


def _time(body: Json) -> datetime | None:
    try:
        return datetime.fromisoformat(body["status"]["timestamp"])
    except (KeyError, ValueError):
        return None


def _stream_data(metadata: Json | None) -> StreamData:
    try:
        return stream.read(metadata)
    except ValidationError:
        return StreamData()


def _task_data(metadata: Json | None) -> TaskData:
    found = (metadata or {}).get(task.KEY)
    if not isinstance(found, dict):
        return TaskData()
    known = {key: found[key] for key in _SHOWN if key in found}
    try:
        return TaskData.model_validate(known)
    except ValidationError as error:
        faults = {fault["loc"][0] for fault in error.errors()}
        return TaskData.model_validate({key: value for key, value in known.items() if key not in faults})


_SHOWN: Final = ("name", "participants", "parent_tasks", "sub_tasks", "plan", "usage", "model", "reasoning_effort")
"""What of a task's data a view has."""


def _answer(message: Json, metadata: Json | None) -> CommandAnswer | None:
    found = (metadata or {}).get(commands.KEY) or (message.get("metadata") or {}).get(commands.KEY)
    try:
        told = CommandsData.model_validate(found or {})
    except ValidationError:
        return None
    if told.name is None or told.outcome is None:
        return None
    data = next((part["data"] for part in message.get("parts", ()) if isinstance(part.get("data"), dict)), None)
    return CommandAnswer(told.name, told.outcome, data)


def _offer(entry: Any) -> CommandOffer | None:
    try:
        offer = CommandOffer.model_validate(entry)
    except ValidationError:
        return None
    return offer if read_command(f"/{offer.name}") == CommandCall(name=offer.name) else None
