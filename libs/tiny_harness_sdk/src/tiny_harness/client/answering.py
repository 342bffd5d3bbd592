"""Sends one answer to a question and follows the turn that goes on with it.

Before the server has shown that it took the answer, a broken stream is cured by sending the same answer again (it is
never taken twice); afterwards by subscribing from the last event seen.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from tiny_harness.client.calls import Calls
from tiny_harness.client.events import Changed, StateChanged, TaskEvent, TaskShown
from tiny_harness.errors import TaskEnded


class Answering:
    """An answer's way.

    Args:
        message: The answer, as A2A JSON.
    """

    def __init__(self, message: dict[str, Any]) -> None:
        self.is_over = False
        self.is_taken = False
        """Whether the server has shown that it has the answer."""
        self._message = message
        self._task_id: str = message["taskId"]
        self._cursor: int | None = None

    @property
    def known_task(self) -> str | None:
        """The task, once the server has shown that it has the answer."""
        return self._task_id if self.is_taken else None

    def see(self, event: TaskEvent) -> bool:
        """Take an event in; `False` if it was seen before."""
        if isinstance(event, TaskShown):
            self.is_over = event.view.state.is_terminal or (self.is_taken and event.view.state.is_interrupted)
            self.is_taken = True  # the first thing that a server shows of a message that it took is the task
        elif isinstance(event, Changed):
            if event.seq is not None and self._cursor is not None and event.seq <= self._cursor:
                return False
            self._see_change(event)
        if isinstance(event, TaskShown | Changed) and event.seq is not None:
            self._cursor = event.seq
        return True

    def is_told(self) -> bool:
        """Never: only the end of the turn ends it."""
        return False

    async def attempt(self, calls: Calls) -> AsyncGenerator[TaskEvent]:
        """Send the answer, whose stream ends as soon as it is taken; then follow the turn."""
        if not self.is_taken:
            async with aclosing(calls.send(self._message)) as events:
                async for event in events:
                    yield event
        if not self.is_taken:
            return
        try:
            async with aclosing(calls.subscribe(self._task_id, self._cursor)) as events:
                async for event in events:
                    yield event
        except TaskEnded:
            yield TaskShown(view=await calls.task(self._task_id, None))

    def _see_change(self, event: Changed) -> None:
        if isinstance(event, StateChanged) and event.caused_by == self._message["messageId"]:
            self.is_taken = True
        elif self.is_taken:
            self.is_over = event.ends_turn or event.asks
        self.is_over |= event.state.is_terminal
