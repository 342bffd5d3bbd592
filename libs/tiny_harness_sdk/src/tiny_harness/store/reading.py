"""The reads that may be asked for together, all as of one moment (`Store.read`)."""

from collections.abc import Sequence

from sqlalchemy import Connection

from tiny_harness.contracts import TaskSnapshot
from tiny_harness.events import Event
from tiny_harness.store import acknowledging
from tiny_harness.store import transactions as tx
from tiny_harness.store.port import TaskPage, TaskQuery, TaskRecord, Written


class SqlReading:
    """A transaction that only reads. See `Reading`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def task(self, task_id: str) -> TaskRecord | None:
        return tx.find_task(self._connection, task_id)

    def task_of(self, participant_id: str, task_id: str) -> TaskRecord | None:
        return tx.find_task_of(self._connection, participant_id, task_id)

    def written(self, task_id: str, cause: str) -> Written | None:
        return tx.find_written(self._connection, task_id, cause)

    def words(self, task_id: str, limit: int, before: int | None = None) -> Sequence[Event]:
        return tx.last_words(self._connection, task_id, limit, before)

    def snapshots(self, task_ids: Sequence[str]) -> dict[str, TaskSnapshot]:
        return tx.snapshots(self._connection, task_ids)

    def list_tasks(self, query: TaskQuery) -> TaskPage:
        return tx.list_tasks(self._connection, query)

    def acknowledged(self, task_ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
        return acknowledging.acknowledged(self._connection, task_ids)
