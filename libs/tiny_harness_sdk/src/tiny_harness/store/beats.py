"""What the heartbeat saw last, as plain functions of a connection like those in `transactions`."""

from datetime import timedelta

from sqlalchemy import Connection

from tiny_harness.store import statements as sql


def count_tasks(connection: Connection) -> dict[str, int]:
    """Count the tasks by their state (`Store.count_tasks`)."""
    return {row.state: row.number for row in connection.execute(sql.TASKS_BY_STATE)}


def save_beat(connection: Connection, name: str, body: str) -> None:
    """Keep what a heartbeat saw instead of what the last one did (`Store.save_beat`)."""
    now = connection.execute(sql.NOW).scalar_one()
    if not connection.execute(sql.UPDATE_BEAT, {"beat": name, "seen": body, "now": now}).rowcount:
        connection.execute(sql.INSERT_BEAT, {"name": name, "body": body, "at": now})


def last_beat(connection: Connection, name: str) -> tuple[str, timedelta] | None:
    """Load what the last one saw, and how long ago that was (`Store.last_beat`)."""
    row = connection.execute(sql.FIND_BEAT, {"beat": name}).first()
    return (row.body, timedelta(milliseconds=max(0, row.now - row.at))) if row else None
