"""What a worker's supervisor has done for it: its notices reach their tasks, and tasks reach it."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from temporalio import activity

from tiny_harness.contracts import NOTICE
from tiny_harness.ext.task import TaskText
from tiny_harness.store import Store, TaskRecord
from tiny_harness_engine.activities.edge import edge
from tiny_harness_engine.core.desk import Expires, Moves, Reminds, Stalls, Starts, Warns
from tiny_harness_engine.core.supervision import TaskNotice, works_here
from tiny_harness_engine.core.transcript import words_of
from tiny_harness_engine.runs import Runs
from tiny_harness_engine.supervision_calls import GIVE_NOTICE, TELL_SUPERVISOR, GiveNotice
from tiny_harness_engine.supervisors import Supervisors

MAX_REQUEST_CHARS: Final = 300
LAST_WORDS_EVENTS: Final = 20
END: Final = "Go on with each, or end it: call task_update with done, blocked or failed and a summary."


class SupervisingActivities:
    """`give_notice` and `tell_supervisor`, bound to a store and to Temporal."""

    def __init__(self, store: Store, runs: Runs, supervisors: Supervisors) -> None:
        self._store = store
        self._runs = runs
        self._supervisors = supervisors

    @activity.defn(name=GIVE_NOTICE)
    async def give_notice(self, request: GiveNotice) -> None:
        """Tell tasks what their worker's supervisor decided. What a task knows already does nothing to it."""
        with edge("a notice to %s could not be given", request.worker):
            for task_id, told in await self._told(request):
                await self._runs.begin(task_id, NOTICE, told)

    @activity.defn(name=TELL_SUPERVISOR)
    async def tell_supervisor(self, task_id: str) -> None:
        """Tell a worker's supervisor how a task is."""
        with edge("the supervisor of task %s could not be told", task_id):
            record = await self._store.task(task_id)
            if record is not None:
                await self._supervisors.tell(record.snapshot)

    async def _told(self, request: GiveNotice) -> Sequence[tuple[str, TaskNotice]]:
        """Put a notice into words, for each task that it concerns."""
        cause, notice = request.cause, request.notice
        match notice:
            case Starts():
                told = TaskNotice(cause=cause, kind="starts")
            case Moves():
                told = TaskNotice(cause=cause, kind="moves", position=notice.position)
            case Reminds():
                return await self._reminders(cause, notice)
            case Stalls():
                words = f"{request.worker} has not answered any reminder: the task is stalled, and a person is to look."
                told = TaskNotice(cause=cause, kind="stalls", words=words)
            case Warns():
                words = f"Nothing has happened for {_span(notice.quiet)}: the task expires in {_span(notice.left)}."
                told = TaskNotice(cause=cause, kind="warns", number=notice.number, words=words)
            case Expires():
                words = (
                    f"Nothing has happened for {_span(notice.quiet)}: the task has expired."
                    " Start a new one, with the same contextId, to go on."
                )
                told = TaskNotice(cause=cause, kind="expires", words=words)
        return [(notice.task_id, told)]

    async def _reminders(self, cause: str, notice: Reminds) -> Sequence[tuple[str, TaskNotice]]:
        """Write one reminder of all due tasks; it is said on the oldest, the others only count it."""
        records = [record for task_id in notice.task_ids if (record := await self._store.task(task_id)) is not None]
        lines = [await self._line(record) for record in records if not record.snapshot.state.is_terminal]
        if not lines:
            return []
        words = "\n".join(("Reminder: these tasks are open and nothing has happened on them for a while.", *lines, END))
        return [
            (record.snapshot.task_id, TaskNotice(cause=cause, kind="reminds", words=words if place == 0 else ""))
            for place, record in enumerate(records)
        ]

    async def _line(self, record: TaskRecord) -> str:
        text = TaskText.model_validate_json(record.text)
        request = _cut(text.goal or text.name or "")
        return f'- task {record.snapshot.task_id}: "{request}"; your last words: "{await self._last_words(record)}"'

    async def _last_words(self, record: TaskRecord) -> str:
        task = record.snapshot
        if task.supervision is not None and task.supervision.last_line:
            return task.supervision.last_line
        if not works_here(task):
            return "none"
        events = await self._store.words(task.task_id, LAST_WORDS_EVENTS)
        replies = (words_of(event) for event in reversed(events) if event.kind == "reply")
        return _cut(next((words for words in replies if words), "none"))


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MAX_REQUEST_CHARS else line[: MAX_REQUEST_CHARS - 1] + "…"


def _span(time: timedelta) -> str:
    """Put a time into words, such as `4 h` or `90 min`."""
    minutes = round(time.total_seconds() / 60)
    return f"{minutes // 60} h" if minutes % 60 == 0 else f"{minutes} min"
