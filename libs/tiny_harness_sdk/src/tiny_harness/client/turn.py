"""Sends one message and follows the turn that reads it, or the command that it is.

Before the server has shown that it took the message in, a broken stream is cured by sending the same message again (it
is never taken twice); afterwards by subscribing from the last event seen. Whether a text of a command's shape is one,
the server says; a command's reply, which may come in the middle of a turn, ends the way of its own message only.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from tiny_harness.client.calls import Calls
from tiny_harness.client.events import Changed, Received, StateChanged, TaskEvent, TaskShown
from tiny_harness.client.views import MessageView, TaskView
from tiny_harness.errors import TaskEnded
from tiny_harness.intake import CommandCall, read_command
from tiny_harness.states import TaskState


class Turn:
    """A message's way.

    Args:
        message: The message, as A2A JSON.
        has_words: Whether the agent will answer it; a control or an envelope is done when its stream ends.
    """

    def __init__(self, message: dict[str, Any], *, has_words: bool) -> None:
        self.is_over = False
        self._message = message
        self._message_id: str = message["messageId"]
        self._has_words = has_words
        self._task_id: str | None = message.get("taskId")
        self._is_received = False
        self._cursor: int | None = None
        self._state: TaskState | None = None
        self._shape = _shape(message)
        self._is_command = False
        self._is_supervised = False

    @property
    def known_task(self) -> str | None:
        """The task, once the server has shown that it has the message."""
        return self._task_id if self._is_received else None

    def see(self, event: TaskEvent) -> bool:
        """Take an event in; `False` if it was seen before."""
        if isinstance(event, TaskShown):
            self._see_task(event)
        elif isinstance(event, Changed):
            if event.seq is not None and self._cursor is not None and event.seq <= self._cursor:
                return False
            self._see_change(event)
        if isinstance(event, TaskShown | Changed) and event.seq is not None:
            self._cursor = event.seq
        return True

    def is_told(self) -> bool:
        """Whether a stream that the server closed has told everything."""
        if not self._has_words:
            return True
        if self._is_command or self._waits_for_command:
            return False
        # A server without our extension tells neither receipts nor whose turn has ended.
        return self._state is not None and (self._state.is_terminal or self._state.is_interrupted)

    async def attempt(self, calls: Calls) -> AsyncGenerator[TaskEvent]:
        """Send the message, or resume where its turn stands."""
        task_id = self.known_task
        source = calls.send(self._message) if task_id is None else calls.subscribe(task_id, self._cursor)
        try:
            async with aclosing(source) as events:
                async for event in events:
                    yield event
        except TaskEnded:
            if task_id is None:
                raise
            yield TaskShown(view=await calls.task(task_id, None))

    def _see_task(self, event: TaskShown) -> None:
        view = event.view
        self._task_id, self._state = view.task_id, view.state
        self._is_supervised = view.supervision is not None
        if any(message.message_id == self._message_id for message in view.messages):
            self._is_received = True
            self._is_command |= event.received_as == "command"
            self.is_over = view.state.is_terminal or self._is_done(view, event.received_as)

    def _is_done(self, view: TaskView, received_as: str | None) -> bool:
        """Whether an open task that has the message is done with it."""
        later = later_than(self._message_id, view)
        is_answered = any(message.command and message.command.name == self._name for message in later)
        if self._is_command or is_answered:
            return is_answered
        # Taking words in and WORKING are one commit: a task that has them and waits is done with them. With a command
        # it waits all the time, and may not have answered yet.
        may_be_command = self._shape is not None and received_as is None
        return view.state.is_interrupted and (not may_be_command or any(message.role == "agent" for message in later))

    @property
    def _waits_for_command(self) -> bool:
        """Whether a server that numbers its events has more to say: what it closes then is a gateway that stops.

        Words to a supervised task have no turn that ends, whatever their shape.
        """
        return self._shape is not None and self._is_received and self._cursor is not None and not self._is_supervised

    @property
    def _name(self) -> str | None:
        return self._shape.name if self._shape else None

    def _see_change(self, event: Changed) -> None:
        self._task_id, self._state = event.task_id, event.state
        if isinstance(event, Received) and event.message.message_id == self._message_id:
            self._is_received = True
            self._is_command |= event.received_as == "command"
            self.is_over = not self._has_words
        elif isinstance(event, StateChanged) and event.caused_by == self._message_id:
            self._is_received = self.is_over = True
        if self._message_id in event.in_reply_to or event.state.is_terminal:
            self._is_received = self.is_over = True


def later_than(message_id: str, view: TaskView) -> tuple[MessageView, ...]:
    """List the messages that a task has after one; none if it does not have that one."""
    ids = [message.message_id for message in view.messages]
    return view.messages[ids.index(message_id) + 1 :] if message_id in ids else ()


def _shape(message: dict[str, Any]) -> CommandCall | None:
    part, *others = message["parts"]
    return read_command(part["text"]) if "text" in part and not others else None
