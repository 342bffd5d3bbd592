"""Who has acknowledged which task, as plain functions of a connection like those in `transactions`."""

from collections.abc import Sequence

from sqlalchemy import Connection

from tiny_harness.store import statements as sql


def acknowledge(connection: Connection, task_id: str, participant_id: str) -> None:
    """Record an acknowledgement unless there is one (`Store.acknowledge`)."""
    key = {"task": task_id, "participant": participant_id}
    if connection.execute(sql.FIND_ACKNOWLEDGEMENT, key).first() is None:
        now = connection.execute(sql.NOW).scalar_one()
        connection.execute(
            sql.INSERT_ACKNOWLEDGEMENT, {"task_id": task_id, "participant_id": participant_id, "at": now}
        )


def acknowledged(connection: Connection, task_ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """List who acknowledged each of some tasks (`Reading.acknowledged`)."""
    found: dict[str, tuple[str, ...]] = {}
    for row in connection.execute(sql.ACKNOWLEDGEMENTS, {"tasks": list(task_ids)}):
        found[row.task_id] = (*found.get(row.task_id, ()), row.participant_id)
    return found
