"""Applies events to a view of a task. Pure, and safe to do twice with the same event."""

from dataclasses import replace
from typing import Any, Final

from tiny_harness.client.decode import decode_usage
from tiny_harness.client.events import Changed, Received, Replied, Stepped, TaskEvent, TaskShown
from tiny_harness.client.views import MessageView, Question, TaskView
from tiny_harness.ext.supervision import SupervisionData
from tiny_harness.ext.task import TaskData


def fold(view: TaskView | None, event: TaskEvent) -> TaskView | None:
    """Give the task as it is after an event; unchanged by one that tells nothing lasting."""
    if isinstance(event, TaskShown):
        return event.view
    if not isinstance(event, Changed):
        return view
    known = view or TaskView(task_id=event.task_id, context_id=event.context_id, state=event.state)
    said = event.message if isinstance(event, Received | Replied | Stepped) else None
    return replace(
        known,
        state=event.state,
        sub_state=event.sub_state,
        updated_at=event.at or known.updated_at,
        messages=_with(known.messages, said),
        question=_question(known, event),
        supervision=_supervision(known, event),
        **_told(event.data),
    )


def _supervision(known: TaskView, event: Changed) -> SupervisionData | None:
    """Give how the task stands with its worker; events do not tell who acknowledged it."""
    if event.supervision is None or known.supervision is None:
        return event.supervision or known.supervision
    return event.supervision.model_copy(update={"acknowledged": known.supervision.acknowledged})


def _told(data: TaskData | None) -> dict[str, Any]:
    """Give the fields of a view that a change tells anew."""
    if data is None:
        return {}
    told = {_FIELDS[field]: getattr(data, field) for field in data.model_fields_set if field in _FIELDS}
    told["usage"] = decode_usage(data.usage)
    return {field: value for field, value in told.items() if value is not None}


_FIELDS: Final = {
    "name": "name",
    "participants": "participants",
    "parent_tasks": "parent_tasks",
    "sub_tasks": "sub_tasks",
    "plan": "plan",
    "model": "model",
    "reasoning_effort": "effort",
}
"""Which field of the task's data is which of the view's."""


def _question(known: TaskView, event: Changed) -> Question | None:
    """Give what the task waits to be told after an event; others than its own leave an open question as it is."""
    if not event.asks:
        return None
    if isinstance(event, Replied) and event.message.command is None:
        return Question(event.sub_state or "", event.message.text, event.request_id, event.choices)
    before = known.question
    if before and before.sub_state == event.sub_state and event.request_id in (None, before.request_id):
        return before
    said = [message.text for message in known.messages if message.role == "agent" and message.command is None]
    return Question(event.sub_state or "", said[-1] if said else "", event.request_id, event.choices)


def _with(messages: tuple[MessageView, ...], said: MessageView | None) -> tuple[MessageView, ...]:
    if said is None or not said.text or any(message.message_id == said.message_id for message in messages):
        return messages
    return (*messages, said)
