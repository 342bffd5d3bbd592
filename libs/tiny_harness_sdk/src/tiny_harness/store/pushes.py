"""Push configurations and how far each was served, as plain functions of a connection like those in `transactions`."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection

from tiny_harness.push import PushKey
from tiny_harness.store import statements as sql
from tiny_harness.store.port import KeptPush, PushStatus


def save_push(connection: Connection, key: PushKey, url: str, secret: bytes, after: int, most: int) -> bool:
    """Keep a configuration, new or instead of the one of that id (`Store.save_push`)."""
    connection.execute(sql.LOCK_TASK, {"task": key.task_id})
    named, now = _named(key), connection.execute(sql.NOW).scalar_one()
    values = {"to_url": url, "sealed": secret, "now": now}
    if connection.execute(sql.REPLACE_PUSH, {**named, **values}).rowcount:
        return True
    if len(pushes_of(connection, key.task_id, key.participant_id)) >= most:
        return False
    row = {"url": url, "secret": secret, "delivered_seq": after, "status": "ok", "failures": 0, "at": now}
    connection.execute(sql.INSERT_PUSH, {**key.model_dump(), **row})
    return True


def find_push(connection: Connection, key: PushKey) -> KeptPush | None:
    """Load one (`Store.push`)."""
    row = connection.execute(sql.FIND_PUSH, _named(key)).first()
    return _kept(row) if row else None


def pushes_of(connection: Connection, task_id: str, participant_id: str) -> Sequence[KeptPush]:
    """List a participant's on a task (`Store.pushes_of`)."""
    named = {"task": task_id, "participant": participant_id}
    return [_kept(row) for row in connection.execute(sql.PUSHES_OF, named)]


def delete_push(connection: Connection, key: PushKey) -> bool:
    """Delete one (`Store.delete_push`)."""
    return connection.execute(sql.DELETE_PUSH, _named(key)).rowcount > 0


def note_push(connection: Connection, key: PushKey, delivered: int, status: PushStatus, failures: int) -> None:
    """Note how far one was served (`Store.note_push`)."""
    now = connection.execute(sql.NOW).scalar_one()
    told = {"served": delivered, "stands": status, "failed": failures, "now": now}
    connection.execute(sql.NOTE_PUSH, {**_named(key), **told})


def pushes_behind(connection: Connection, task_id: str | None, limit: int) -> Sequence[PushKey]:
    """List those that have something to be told (`Store.pushes_behind`)."""
    statement, of_task = (sql.PUSHES_BEHIND, {}) if task_id is None else (sql.PUSHES_BEHIND_OF, {"task": task_id})
    return [_key(row) for row in connection.execute(statement, {**of_task, "limit": limit})]


def count_pushes(connection: Connection) -> dict[str, int]:
    """Count them by how they stand (`Store.count_pushes`)."""
    return {row.status: row.number for row in connection.execute(sql.COUNT_PUSHES)}


def _named(key: PushKey) -> dict[str, str]:
    return {"task": key.task_id, "participant": key.participant_id, "config": key.config_id}


def _key(row: Any) -> PushKey:
    return PushKey(task_id=row.task_id, participant_id=row.participant_id, config_id=row.config_id)


def _kept(row: Any) -> KeptPush:
    return KeptPush(_key(row), row.url, bytes(row.secret), row.delivered_seq, row.status, row.failures)
