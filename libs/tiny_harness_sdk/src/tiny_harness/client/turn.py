"""Sends one message and follows the turn that reads it.

Before the server has shown that it took the message in, a broken stream is cured by sending the same message again (it
is never taken twice); afterwards by subscribing from the last event seen.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from tiny_harness.client.calls import Calls
from tiny_harness.client.events import Changed, Received, StateChanged, TaskEvent, TaskShown
from tiny_harness.errors import TaskEnded
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
        if any(message.message_id == self._message_id for message in view.messages):
            self._is_received = True
            # Taking a message in and WORKING are one commit: a task that has it and waits is done with it.
            self.is_over = view.state.is_terminal or view.state.is_interrupted

    def _see_change(self, event: Changed) -> None:
        self._task_id, self._state = event.task_id, event.state
        if isinstance(event, Received) and event.message.message_id == self._message_id:
            self._is_received = True
            self.is_over = not self._has_words or event.received_as == "command"
        elif isinstance(event, StateChanged) and event.caused_by == self._message_id:
            self._is_received = self.is_over = True
        if self._message_id in event.in_reply_to or event.state.is_terminal:
            self._is_received = self.is_over = True
