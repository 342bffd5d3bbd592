"""How far observers are, as plain functions of a connection like those in `transactions`."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Connection

from tiny_harness.events import Event
from tiny_harness.store import statements as sql
from tiny_harness.store.port import ChangedTask
from tiny_harness.store.transactions import event_from, from_millis, to_millis


def register_observers(connection: Connection, observers: Sequence[str]) -> None:
    """Make observers known (`Store.register_observers`)."""
    known = set(connection.execute(sql.FIND_OBSERVERS, {"names": list(observers)}).scalars())
    now = connection.execute(sql.NOW).scalar_one()
    rows = [{"observer": name, "since": now} for name in sorted(set(observers) - known)]
    if rows:
        connection.execute(sql.INSERT_OBSERVER, rows)


def changed_tasks(
    connection: Connection, observer: str, after: tuple[datetime, str], limit: int
) -> Sequence[ChangedTask]:
    """List tasks that changed (`Store.changed_tasks`)."""
    place = {"after_at": to_millis(after[0]), "after_id": after[1]}
    rows = connection.execute(sql.CHANGED_TASKS, {"observer": observer, "limit": limit, **place})
    return [ChangedTask(row.task_id, from_millis(row.updated_at), bool(row.is_behind)) for row in rows]


def unobserved_events(connection: Connection, observer: str, task_id: str, limit: int) -> Sequence[Event]:
    """Read what an observer has not had (`Store.unobserved_events`)."""
    values = {"observer": observer, "task": task_id, "limit": limit}
    return [event_from(row) for row in connection.execute(sql.UNOBSERVED_EVENTS, values).mappings()]


def advance_observer(connection: Connection, observer: str, task_id: str, seq: int) -> None:
    """Move an observer on (`Store.advance_observer`)."""
    if connection.execute(sql.ADVANCE_OBSERVED, {"who": observer, "task": task_id, "number": seq}).rowcount:
        return
    known = connection.execute(sql.FIND_OBSERVED, {"observer": observer, "task": task_id}).first()
    if known is None and connection.execute(sql.HEADS, {"tasks": [task_id]}).first():  # else it was purged
        connection.execute(sql.INSERT_OBSERVED, {"observer": observer, "task_id": task_id, "seq": seq})
