"""Follows a task for as long as it is open."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from tiny_harness.client.calls import Calls
from tiny_harness.client.events import Changed, TaskEvent, TaskShown
from tiny_harness.errors import TaskEnded


class Following:
    """A follower's place in a task.

    Args:
        task_id: The task.
        cursor: `seq` of the last event known; the whole task comes first without it.
    """

    def __init__(self, task_id: str, cursor: int | None) -> None:
        self.cursor = cursor
        self.is_over = False
        self._task_id = task_id

    @property
    def known_task(self) -> str:
        """The task."""
        return self._task_id

    def see(self, event: TaskEvent) -> bool:
        """Take an event in; `False` if it was seen before."""
        if isinstance(event, TaskShown):
            # A snapshot may come at any time and replaces everything, also one that tells nothing new.
            self.cursor = event.seq if event.seq is not None else self.cursor
            self.is_over = event.view.state.is_terminal
        elif isinstance(event, Changed):
            if event.seq is not None and self.cursor is not None and event.seq <= self.cursor:
                return False
            self.cursor = self.cursor if event.seq is None else event.seq
            self.is_over = event.state.is_terminal
        return True

    def is_told(self) -> bool:
        """Never: only the task's end ends it."""
        return False

    async def attempt(self, calls: Calls) -> AsyncGenerator[TaskEvent]:
        """Subscribe; a task that has ended, with nothing left to tell, is shown as it is."""
        is_silent = True
        try:
            async with aclosing(calls.subscribe(self._task_id, self.cursor)) as events:
                async for event in events:
                    is_silent = False
                    yield event
        except TaskEnded:
            is_silent = True
        if is_silent and (view := await calls.task(self._task_id, None)).state.is_terminal:
            yield TaskShown(view=view)
