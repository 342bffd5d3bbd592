"""An open conversation, as the TUI knows it. No widgets, no I/O."""

from collections import deque
from dataclasses import dataclass, field
from typing import Final

from tiny_harness.client import Changed, Question, Received, Stepped, TaskEvent, TaskShown, TaskView, fold
from tiny_harness.ext.supervision import marks
from tiny_harness.ext.task import SubTask
from tiny_harness.states import AWAITING_APPROVAL, TaskState, describe
from tiny_harness.tui.happened import happened
from tiny_harness.tui.printable import one_line

MAX_EVENTS: Final = 200
"""The last events that are kept as words."""
ENDED: Final = "This task has ended. A message starts a new one in the same context."
REFUSES: Final = "F6 chooses. A message refuses, with its words as the reason."


@dataclass(eq=False)
class Room:
    """One conversation: nothing yet, or a task.

    A message to a room whose task has ended starts a new task in the same context.
    """

    view: TaskView | None = None
    cursor: int | None = None
    """`seq` of the last event seen."""
    context_id: str | None = None
    """Groups the room's first task with an earlier one."""
    has_words: bool = False
    """Whether there is anything to read, also if it is still being sent."""
    opened: str | None = None
    """The task that it was opened for, which may not have been shown yet."""
    queued: set[str] = field(default_factory=set[str])
    """Ids of messages that wait for the running turn."""
    events: deque[str] = field(default_factory=lambda: deque[str](maxlen=MAX_EVENTS))
    """What happened, in words, oldest first."""
    oldest: int | None = None
    """`seq` of the event before which nothing was read yet; `None` if the server does not number its events."""
    is_reading: bool = False
    """Whether what came before is being read."""
    wants_older: bool = False
    """Whether the reader asked for more of it meanwhile."""

    def see(self, event: TaskEvent) -> None:
        """Take an event in."""
        self.view = fold(self.view, event)
        if isinstance(event, TaskShown | Changed) and event.seq is not None:
            self.cursor = event.seq
            self.oldest = event.seq if self.oldest is None else self.oldest
        if words := happened(event):
            self.events.append(words)
        if isinstance(event, Received):
            self._see_message(event.message.message_id, event.received_as)
        elif isinstance(event, Stepped):
            self.queued.difference_update(event.read)
        elif isinstance(event, Changed) and event.ends_turn and not event.asks:
            self.queued.clear()  # the next turn reads all that waited; an ended task reads none

    def _see_message(self, message_id: str, received_as: str | None) -> None:
        if received_as == "queued":
            self.queued.add(message_id)
        elif received_as == "turn":
            self.queued.clear()  # the turn reads all that waited

    @property
    def question(self) -> Question | None:
        """What the task waits to be told."""
        return self.view.question if self.view else None

    @property
    def prompt(self) -> str:
        """What the empty composer says."""
        if self.has_ended:
            return ENDED
        if self.question is None:
            return "Message"
        is_refused_by_words = self.question.sub_state == AWAITING_APPROVAL and self.question.choices
        return REFUSES if is_refused_by_words else "Your answer"

    @property
    def task_id(self) -> str | None:
        """The task, `None` before there is one."""
        return self.view.task_id if self.view else self.opened

    @property
    def state(self) -> TaskState | None:
        """The task's state, `None` before there is a task."""
        return self.view.state if self.view else None

    @property
    def is_open(self) -> bool:
        """Whether there is a task that has not ended."""
        return self.state is not None and not self.state.is_terminal

    @property
    def is_busy(self) -> bool:
        """Whether a turn runs."""
        return self.state in (TaskState.WORKING, TaskState.SUBMITTED)

    @property
    def has_ended(self) -> bool:
        """Whether the task takes nothing more."""
        return self.state is not None and self.state.is_terminal

    @property
    def parent(self) -> str | None:
        """The task that this one is a part of."""
        return next(iter(self.view.parent_tasks), None) if self.view else None

    @property
    def sub_tasks(self) -> tuple[SubTask, ...]:
        """The parts that this harness has."""
        return tuple(child for child in self.view.sub_tasks if child.agent is None) if self.view else ()

    @property
    def possible(self) -> frozenset[str]:
        """The actions that make sense now, of those that do not always."""
        holds = {
            "complete": self.is_open,
            "cancel": self.is_open,
            "interrupt": self.is_busy,
            "new": self.view is not None,
            "copy": bool(self.view and any(message.role == "agent" for message in self.view.messages)),
            "sub_task": bool(self.sub_tasks),
            "parent": self.parent is not None,
            "answer": bool(self.question and self.question.choices),
        }
        return frozenset(action for action, is_possible in holds.items() if is_possible)

    @property
    def name(self) -> str:
        """What to call it on one line."""
        return title(self.view) if self.view else "New conversation"

    @property
    def words(self) -> str:
        """State and sub-state in words, and of a supervised task what is worth a look."""
        if self.view is None:
            return "Not started"
        known = self.view.supervision
        return " · ".join((describe(self.view.state, self.view.sub_state), *(marks(known) if known else ())))

    @property
    def chosen(self) -> str:
        """Model and effort, where they were chosen for this task."""
        return " · ".join(one_line(word) for word in (self.view.model, self.view.effort) if word) if self.view else ""


def title(view: TaskView) -> str:
    """Call a task by its name, or by its id if it has none."""
    return one_line(view.name) or one_line(view.task_id)
