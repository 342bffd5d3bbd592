"""Applies events to a view of a task. Pure, and safe to do twice with the same event."""

from dataclasses import replace

from tiny_harness.client.events import Changed, Received, Replied, TaskEvent, TaskShown
from tiny_harness.client.views import MessageView, TaskView


def fold(view: TaskView | None, event: TaskEvent) -> TaskView | None:
    """Give the task as it is after an event; unchanged by one that tells nothing lasting."""
    if isinstance(event, TaskShown):
        return event.view
    if not isinstance(event, Changed):
        return view
    known = view or TaskView(task_id=event.task_id, context_id=event.context_id, state=event.state)
    said = event.message if isinstance(event, Received | Replied) else None
    return replace(
        known,
        state=event.state,
        sub_state=event.sub_state,
        updated_at=event.at or known.updated_at,
        name=known.name if event.name is None else event.name,
        messages=_with(known.messages, said),
    )


def _with(messages: tuple[MessageView, ...], said: MessageView | None) -> tuple[MessageView, ...]:
    if said is None or not said.text or any(message.message_id == said.message_id for message in messages):
        return messages
    return (*messages, said)
