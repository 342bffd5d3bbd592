"""What the stores on SQL databases share: which function of a connection each method of the port runs.

An adapter says how a connection comes about, on which thread, and what a failure of its database means.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeVar

from sqlalchemy import Connection

from tiny_harness.contracts import TaskSnapshot
from tiny_harness.events import Event
from tiny_harness.ext.task import ParticipantKind
from tiny_harness.push import PushKey
from tiny_harness.states import TaskState
from tiny_harness.store import acknowledging, beats, engines, observing, pushes, tokens, tool_calls
from tiny_harness.store import transactions as tx
from tiny_harness.store.port import (
    CallRow,
    CancelRequest,
    ChangedTask,
    Commit,
    Committed,
    EngineReport,
    KeptPush,
    KeptToken,
    KeptVerdict,
    PushStatus,
    Reading,
    StepRow,
    TaskRecord,
    Written,
)
from tiny_harness.store.reading import SqlReading

T = TypeVar("T")


def with_reading(connection: Connection, look: Callable[[Reading], T]) -> T:
    """Let somebody look at the store through a connection (`Store.read`)."""
    return look(SqlReading(connection))


class SqlStore(ABC):
    """Tasks in an SQL database. See `Store` for what each method means."""

    @abstractmethod
    async def _write(self, work: Callable[..., T], *arguments: Any) -> T:
        """Run work in a transaction that nothing comes between, as if it were the only one."""

    @abstractmethod
    async def _read(self, work: Callable[..., T], *arguments: Any) -> T:
        """Run work that makes one statement, which only reads."""

    @abstractmethod
    async def _look(self, work: Callable[..., T], *arguments: Any) -> T:
        """Run work that only reads, all as of one moment."""

    async def commit(self, commit: Commit) -> Committed:
        return await self._write(tx.commit, commit)

    async def read(self, look: Callable[[Reading], T]) -> T:
        return await self._look(with_reading, look)

    async def task(self, task_id: str) -> TaskRecord | None:
        return await self._read(tx.find_task, task_id)

    async def task_of(self, participant_id: str, task_id: str) -> TaskRecord | None:
        return await self._read(tx.find_task_of, participant_id, task_id)

    async def written(self, task_id: str, cause: str) -> Written | None:
        return await self._read(tx.find_written, task_id, cause)

    async def events(self, task_id: str, after: int, limit: int) -> Sequence[Event]:
        return await self._read(tx.events_after, task_id, after, limit)

    async def words(self, task_id: str, limit: int, before: int | None = None) -> Sequence[Event]:
        return await self._read(tx.last_words, task_id, limit, before)

    async def heads(self, task_ids: Sequence[str]) -> dict[str, int]:
        return await self._read(tx.heads, task_ids)

    async def snapshots(self, task_ids: Sequence[str]) -> dict[str, TaskSnapshot]:
        return await self._read(tx.snapshots, task_ids)

    async def on_any_task(self, participant_id: str, context_id: str) -> bool:
        return await self._read(tx.on_any_task, participant_id, context_id)

    async def open_tasks(self, states: Sequence[TaskState], after: str, limit: int) -> Sequence[str]:
        return await self._read(tx.open_tasks, states, after, limit)

    async def save_step(self, task_id: str, turn: int, step: int, record: str) -> str:
        return await self._write(tx.save_step, task_id, turn, step, record)

    async def step(self, task_id: str, turn: int, step: int) -> str | None:
        return await self._read(tx.find_step, task_id, turn, step)

    async def input_records(self, task_id: str) -> dict[int, str]:
        return await self._read(tx.input_records, task_id)

    async def claim_call(self, task_id: str, turn: int, step: int, call: int, claim: str) -> str:
        return await self._write(tool_calls.claim_call, task_id, turn, step, call, claim)

    async def save_call(self, task_id: str, turn: int, step: int, call: int, record: str) -> str:
        return await self._write(tool_calls.save_call, task_id, turn, step, call, record)

    async def calls(self, task_id: str, turns: Sequence[int]) -> Sequence[CallRow]:
        return await self._read(tool_calls.calls, task_id, turns)

    async def steps(self, task_id: str, turns: Sequence[int]) -> Sequence[StepRow]:
        return await self._read(tool_calls.steps, task_id, turns)

    async def reserve_task(self, participant_id: str, key: str, task_id: str) -> str:
        return await self._write(tx.reserve_task, participant_id, key, task_id)

    async def request_cancel(self, task_id: str, requested_by: str) -> None:
        await self._write(tx.request_cancel, task_id, requested_by)

    async def acknowledge(self, task_id: str, participant_id: str) -> None:
        await self._write(acknowledging.acknowledge, task_id, participant_id)

    async def pending_cancels(self, older_than: timedelta) -> Sequence[CancelRequest]:
        return await self._read(tx.pending_cancels, older_than)

    async def verdicts(self, task_id: str) -> Sequence[KeptVerdict]:
        return await self._read(tx.verdicts, task_id)

    async def save_catalogue(self, digest: str, body: str) -> None:
        await self._write(engines.save_catalogue, digest, body)

    async def current_catalogue(self) -> tuple[str, str] | None:
        return await self._read(engines.current_catalogue)

    async def report_engine(self, engine_id: str, digest: str, health: str) -> None:
        await self._write(engines.report_engine, engine_id, digest, health)

    async def engines(self, seen_within: timedelta) -> Sequence[EngineReport]:
        return await self._read(engines.engines, seen_within)

    async def register_observers(self, observers: Sequence[str]) -> None:
        await self._write(observing.register_observers, observers)

    async def changed_tasks(self, observer: str, after: tuple[datetime, str], limit: int) -> Sequence[ChangedTask]:
        return await self._read(observing.changed_tasks, observer, after, limit)

    async def unobserved_events(self, observer: str, task_id: str, limit: int) -> Sequence[Event]:
        return await self._read(observing.unobserved_events, observer, task_id, limit)

    async def advance_observer(self, observer: str, task_id: str, seq: int) -> None:
        await self._write(observing.advance_observer, observer, task_id, seq)

    async def add_token(
        self,
        token_id: str,
        digest: str,
        participant_id: str,
        kind: ParticipantKind,
        note: str,
        lifetime: timedelta | None,
    ) -> None:
        await self._write(tokens.add_token, token_id, digest, participant_id, kind, note, lifetime)

    async def find_token(self, digest: str) -> KeptToken | None:
        return await self._read(tokens.find_token, digest)

    async def tokens(self) -> Sequence[KeptToken]:
        return await self._read(tokens.tokens)

    async def revoke_token(self, token_id: str) -> bool:
        return await self._write(tokens.revoke_token, token_id)

    async def save_push(self, key: PushKey, url: str, secret: bytes, after: int, most: int) -> bool:
        return await self._write(pushes.save_push, key, url, secret, after, most)

    async def push(self, key: PushKey) -> KeptPush | None:
        return await self._read(pushes.find_push, key)

    async def pushes_of(self, task_id: str, participant_id: str) -> Sequence[KeptPush]:
        return await self._read(pushes.pushes_of, task_id, participant_id)

    async def delete_push(self, key: PushKey) -> bool:
        return await self._write(pushes.delete_push, key)

    async def note_push(self, key: PushKey, delivered: int, status: PushStatus, failures: int) -> None:
        await self._write(pushes.note_push, key, delivered, status, failures)

    async def pushes_behind(self, task_id: str | None, limit: int) -> Sequence[PushKey]:
        return await self._read(pushes.pushes_behind, task_id, limit)

    async def count_pushes(self) -> dict[str, int]:
        return await self._read(pushes.count_pushes)

    async def count_tasks(self) -> dict[str, int]:
        return await self._read(beats.count_tasks)

    async def save_beat(self, name: str, body: str) -> None:
        await self._write(beats.save_beat, name, body)

    async def last_beat(self, name: str) -> tuple[str, timedelta] | None:
        return await self._read(beats.last_beat, name)

    async def purge(self, ended_before: timedelta, dry_run: bool = False) -> int:
        if dry_run:
            return await self._read(tx.purge, ended_before, True)
        total = 0
        while deleted := await self._write(tx.purge, ended_before, False):
            total += deleted
        return total
