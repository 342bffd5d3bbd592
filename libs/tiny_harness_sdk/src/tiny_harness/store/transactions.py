"""What the store does within one transaction, as plain functions of a connection.

Every adapter runs these; only how a connection comes about and on which thread differs. The commit is the heart of the
house (DESIGN: one writer, one log): read it first.
"""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Row

from tiny_harness.contracts import TaskSnapshot
from tiny_harness.events import Event
from tiny_harness.hooks import Verdict
from tiny_harness.states import TaskState
from tiny_harness.store import statements as sql
from tiny_harness.store.port import (
    CancelRequest,
    Commit,
    Committed,
    KeptVerdict,
    NewEvent,
    TaskPage,
    TaskQuery,
    TaskRecord,
    Written,
)


def commit(connection: Connection, commit: Commit) -> Committed:
    """Write a task's next events, or say what was there already (`Store.commit`)."""
    row = connection.execute(sql.LOCK_TASK, {"task": commit.task_id}).first()
    current = TaskSnapshot.model_validate_json(row.snapshot) if row else None
    if current is not None:
        known = find_written(connection, commit.task_id, commit.cause)
        if known is not None:
            return Committed(current, known, ())
        if current.state.is_terminal or current.head > commit.head or not commit.events:
            return Committed(current, None, ())
    now: int = row.now if row else connection.execute(sql.NOW).scalar_one()
    found_head = current.head if current else 0
    text = commit.text or (row.text if row else "{}")
    written = _number(commit, found_head, now, text)
    snapshot = commit.snapshot.model_copy(update={"head": written[-1]["seq"] if written else found_head})
    _write_task(connection, snapshot, text, now, is_new=row is None)
    _write_participants(connection, snapshot, current, now)
    connection.execute(sql.INSERT_EVENT, written)
    _write_verdicts(connection, commit, now)
    own = next(event for event in written if event["cause"] == commit.cause)
    return Committed(
        snapshot, Written(commit.cause, own["seq"], own["digest"]), [event_from(event) for event in written]
    )


def _number(commit: Commit, found_head: int, now: int, text: str) -> list[dict[str, Any]]:
    """Give the new events their numbers; numbers that a failover took back become one `lost` event."""
    head = commit.head
    rows: list[dict[str, Any]] = []
    if found_head < head:
        lost = NewEvent("lost", lambda _seq, _at, _words: f'{{"lost":{{"from":{found_head + 1},"to":{head}}}}}')
        rows.append(_event_row(commit.task_id, f"lost:{head + 1}", 0, lost, head + 1, now, text))
        head += 1
    for part, event in enumerate(commit.events):
        rows.append(_event_row(commit.task_id, commit.cause, part, event, head + 1 + part, now, text))
    return rows


def _event_row(task_id: str, cause: str, part: int, event: NewEvent, seq: int, now: int, text: str) -> dict[str, Any]:
    return {
        "task_id": task_id,
        "seq": seq,
        "cause": cause,
        "part": part,
        "kind": event.kind,
        "payload": event.render(seq, from_millis(now), text),
        "digest": event.digest,
        "at": now,
    }


def _write_task(connection: Connection, snapshot: TaskSnapshot, text: str, now: int, *, is_new: bool) -> None:
    values = {
        "state": snapshot.state.value,
        "head": snapshot.head,
        "snapshot": snapshot.model_dump_json(),
        "text": text,
    }
    if is_new:
        ids = {"task_id": snapshot.task_id, "context_id": snapshot.context_id}
        connection.execute(sql.INSERT_TASK, {**ids, **values, "created_at": now, "updated_at": now})
    else:
        connection.execute(sql.UPDATE_TASK, {**values, "task": snapshot.task_id, "now": now})


def _write_participants(connection: Connection, snapshot: TaskSnapshot, before: TaskSnapshot | None, now: int) -> None:
    if before is not None:
        connection.execute(sql.TOUCH_PARTICIPANTS, {"task": snapshot.task_id, "now": now})
    known = {participant.id for participant in before.participants} if before else set[str]()
    added = {participant.id for participant in snapshot.participants} - known
    if added:
        rows = [{"participant_id": who, "task_id": snapshot.task_id, "updated_at": now} for who in sorted(added)]
        connection.execute(sql.INSERT_PARTICIPANT, rows)


def _write_verdicts(connection: Connection, commit: Commit, now: int) -> None:
    ids = {"task_id": commit.task_id, "cause": commit.cause, "at": now}
    rows = [{**ids, "part": part, **asdict(verdict)} for part, verdict in enumerate(commit.verdicts)]
    if rows:
        connection.execute(sql.INSERT_VERDICT, rows)


def verdicts(connection: Connection, task_id: str) -> Sequence[KeptVerdict]:
    """List what hooks did on a task (`Store.verdicts`)."""
    return [
        KeptVerdict(row.cause, Verdict(row.executor, row.point, row.kind, row.reason, row.ms), from_millis(row.at))
        for row in connection.execute(sql.VERDICTS, {"task": task_id})
    ]


def find_written(connection: Connection, task_id: str, cause: str) -> Written | None:
    """Look a cause up (`Store.written`)."""
    row = connection.execute(sql.FIND_CAUSE, {"task": task_id, "cause": cause}).first()
    return Written(cause, row.seq, row.digest) if row else None


def find_task(connection: Connection, task_id: str) -> TaskRecord | None:
    """Load a task (`Store.task`)."""
    row = connection.execute(sql.FIND_TASK, {"task": task_id}).first()
    return _record(row) if row else None


def find_task_of(connection: Connection, participant_id: str, task_id: str) -> TaskRecord | None:
    """Load a task that somebody is on (`Store.task_of`)."""
    row = connection.execute(sql.FIND_TASK_OF, {"task": task_id, "participant": participant_id}).first()
    return _record(row) if row else None


def events_after(connection: Connection, task_id: str, after: int, limit: int) -> Sequence[Event]:
    """Read events in order (`Store.events`)."""
    rows = connection.execute(sql.EVENTS_AFTER, {"task": task_id, "after": after, "limit": limit}).mappings()
    return [event_from(row) for row in rows]


def last_words(connection: Connection, task_id: str, limit: int, before: int | None) -> Sequence[Event]:
    """Read the last events with words, oldest first (`Store.words`)."""
    bound = before if before is not None else 2**31 - 1
    rows = connection.execute(sql.LAST_WORDS, {"task": task_id, "before": bound, "limit": limit}).mappings().all()
    return [event_from(row) for row in reversed(rows)]


def heads(connection: Connection, task_ids: Sequence[str]) -> dict[str, int]:
    """Read the heads of several tasks (`Store.heads`)."""
    return {row.task_id: row.head for row in connection.execute(sql.HEADS, {"tasks": list(task_ids)})}


def snapshots(connection: Connection, task_ids: Sequence[str]) -> dict[str, TaskSnapshot]:
    """Load several snapshots (`Store.snapshots`)."""
    rows = connection.execute(sql.SNAPSHOTS, {"tasks": list(task_ids)}).scalars()
    return {found.task_id: found for found in map(TaskSnapshot.model_validate_json, rows)}


def list_tasks(connection: Connection, query: TaskQuery) -> TaskPage:
    """List a participant's tasks (`Reading.list_tasks`)."""
    filters = {
        "participant": query.participant_id,
        "context": query.context_id,
        "state": query.state.value if query.state else None,
        "since": to_millis(query.updated_after) if query.updated_after else None,
    }
    after_at, after_id = (to_millis(query.after[0]), query.after[1]) if query.after else (None, None)
    page = {**filters, "after_at": after_at, "after_id": after_id, "limit": query.limit}
    rows = connection.execute(sql.LIST_TASKS, page).all()
    total = connection.execute(sql.COUNT_TASKS, filters).scalar_one()
    return TaskPage([_record(row) for row in rows], total)


def on_any_task(connection: Connection, participant_id: str, context_id: str) -> bool:
    """Whether a participant is on a task of a context (`Store.on_any_task`)."""
    found = connection.execute(sql.ON_ANY_TASK, {"context": context_id, "participant": participant_id})
    return found.first() is not None


def open_tasks(connection: Connection, states: Sequence[TaskState], after: str, limit: int) -> Sequence[str]:
    """List ids of tasks by state (`Store.open_tasks`)."""
    values = {"states": [state.value for state in states], "after": after, "limit": limit}
    return list(connection.execute(sql.OPEN_TASKS, values).scalars())


def save_step(connection: Connection, task_id: str, turn: int, step: int, record: str) -> str:
    """Keep a step's outcome unless there is one (`Store.save_step`)."""
    found = find_step(connection, task_id, turn, step)
    if found is not None:
        return found
    now = connection.execute(sql.NOW).scalar_one()
    row = {"task_id": task_id, "turn": turn, "step": step, "record": record, "at": now}
    connection.execute(sql.INSERT_STEP, row)
    return record


def find_step(connection: Connection, task_id: str, turn: int, step: int) -> str | None:
    """Load a step's outcome (`Store.step`)."""
    key = {"task": task_id, "turn_no": turn, "step_no": step}
    return connection.execute(sql.FIND_STEP, key).scalar_one_or_none()


def input_records(connection: Connection, task_id: str) -> dict[int, str]:
    """Load the records of a task's inputs (`Store.input_records`)."""
    return {row.step: row.record for row in connection.execute(sql.INPUT_RECORDS, {"task": task_id})}


def reserve_task(connection: Connection, participant_id: str, key: str, task_id: str) -> str:
    """Keep a new task's id under its key unless there is one (`Store.reserve_task`)."""
    found = connection.execute(sql.FIND_KEY, {"participant": participant_id, "name": key}).scalar_one_or_none()
    if found is not None:
        return found
    now = connection.execute(sql.NOW).scalar_one()
    connection.execute(sql.INSERT_KEY, {"participant_id": participant_id, "key": key, "task_id": task_id, "at": now})
    return task_id


def request_cancel(connection: Connection, task_id: str, requested_by: str) -> None:
    """Record a cancel unless there is one (`Store.request_cancel`)."""
    if connection.execute(sql.FIND_CANCEL, {"task": task_id}).first() is None:
        now = connection.execute(sql.NOW).scalar_one()
        connection.execute(sql.INSERT_CANCEL, {"task_id": task_id, "requested_by": requested_by, "at": now})


def pending_cancels(connection: Connection, older_than: timedelta) -> Sequence[CancelRequest]:
    """List unanswered cancels (`Store.pending_cancels`)."""
    rows = connection.execute(sql.PENDING_CANCELS, {"age_ms": to_age(older_than)})
    return [CancelRequest(row.task_id, row.requested_by) for row in rows]


def purge(connection: Connection, ended_before: timedelta, limit_to_count: bool) -> int:
    """Delete up to 500 ended tasks, or only count all of them (`Store.purge`)."""
    age = {"age_ms": to_age(ended_before)}
    if limit_to_count:
        return connection.execute(sql.COUNT_ENDED, age).scalar_one()
    ids = list(connection.execute(sql.ENDED_TASKS, age).scalars())
    for statement in sql.DELETE_TASKS if ids else ():
        connection.execute(statement, {"tasks": ids})
    return len(ids)


def _record(row: Row[Any]) -> TaskRecord:
    snapshot = TaskSnapshot.model_validate_json(row.snapshot)
    return TaskRecord(snapshot, row.text, from_millis(row.created_at), from_millis(row.updated_at))


def event_from(row: Any) -> Event:
    """Read an event's row."""
    return Event(row["task_id"], row["seq"], row["cause"], row["kind"], row["payload"])


def from_millis(millis: int) -> datetime:
    """Read a time as the tables hold it."""
    return datetime.fromtimestamp(millis / 1000, UTC)


def to_millis(time: datetime) -> int:
    """Write a time as the tables hold it."""
    return round(time.timestamp() * 1000)


def to_age(age: timedelta) -> int:
    """Write a span as the tables hold times."""
    return round(age.total_seconds() * 1000)
