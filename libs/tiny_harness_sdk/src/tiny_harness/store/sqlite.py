"""The store on SQLite: one writer thread, a few reader threads, one hop per operation.

Synchronous SQLAlchemy on threads of our own costs a third of the CPU of its async twin (DESIGN: storage). The
write-ahead log lets readers go on while the writer writes, and other processes read and write the same file.
"""

import asyncio
import os
import shutil
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final, TypeVar

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import QueuePool

from tiny_harness.contracts import TaskSnapshot
from tiny_harness.errors import ConfigError, Unavailable
from tiny_harness.events import Event
from tiny_harness.ext.task import ParticipantKind
from tiny_harness.states import TaskState
from tiny_harness.store import acknowledging, beats, engines, observing, tokens, tool_calls
from tiny_harness.store import transactions as tx
from tiny_harness.store.port import (
    CallRow,
    CancelRequest,
    ChangedTask,
    Commit,
    Committed,
    EngineReport,
    KeptToken,
    KeptVerdict,
    Reading,
    StepRow,
    TaskRecord,
    Written,
)
from tiny_harness.store.reading import SqlReading

T = TypeVar("T")

READERS: Final = 4
BUSY_TIMEOUT_S: Final = 5.0
"""How long a write waits for another process's."""


class SqliteStore:
    """Tasks in one SQLite file. See `Store` for what each method means."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writer = ThreadPoolExecutor(1, "store-writer")
        self._readers = ThreadPoolExecutor(READERS, "store-reader")
        self._write_engine = open_engine(path, size=1, begin="BEGIN IMMEDIATE")
        self._read_engine = open_engine(path, size=READERS, begin="BEGIN")

    async def commit(self, commit: Commit) -> Committed:
        return await self._write(tx.commit, commit)

    async def read(self, look: Callable[[Reading], T]) -> T:
        def work(connection: Connection) -> T:
            return look(SqlReading(connection))

        return await self._read(work)

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

    async def backup(self, path: Path) -> None:
        await asyncio.get_running_loop().run_in_executor(self._readers, copy_database, self._path, path)

    def free_bytes(self) -> int:
        return shutil.disk_usage(self._path.parent).free

    async def close(self) -> None:
        for executor, engine in ((self._readers, self._read_engine), (self._writer, self._write_engine)):
            await asyncio.get_running_loop().run_in_executor(executor, engine.dispose)
            executor.shutdown()

    async def _write(self, work: Callable[..., T], *arguments: Any) -> T:
        return await self._run(self._writer, self._write_engine, work, arguments)

    async def _read(self, work: Callable[..., T], *arguments: Any) -> T:
        return await self._run(self._readers, self._read_engine, work, arguments)

    async def _run(
        self, executor: ThreadPoolExecutor, engine: Engine, work: Callable[..., T], arguments: tuple[Any, ...]
    ) -> T:
        return await asyncio.get_running_loop().run_in_executor(executor, _transaction, engine, work, arguments)


def _transaction(engine: Engine, work: Callable[..., T], arguments: tuple[Any, ...]) -> T:
    try:
        with engine.begin() as connection:
            return work(connection, *arguments)
    except DBAPIError as error:
        # Locked, full, damaged, gone; not a mistake of ours in a statement.
        if not isinstance(error.orig, sqlite3.IntegrityError | sqlite3.ProgrammingError):
            raise Unavailable(f"the store cannot answer now ({error.orig})") from error
        raise


def open_engine(path: Path, size: int, begin: str) -> Engine:
    """Open an engine on a file whose transactions start with the given statement."""
    engine = create_engine(
        URL.create("sqlite", database=str(path)),
        poolclass=QueuePool,
        pool_size=size,
        max_overflow=0,
        connect_args={"timeout": BUSY_TIMEOUT_S, "check_same_thread": False, "isolation_level": None},
    )

    @event.listens_for(engine, "connect")
    def _configure(connection: sqlite3.Connection, _record: object) -> None:
        for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "foreign_keys=ON", "journal_size_limit=67108864"):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        connection.exec_driver_sql(begin)

    del _configure, _begin
    return engine


def copy_database(source: Path, target: Path) -> None:
    """Copy a live database to a new file of mode 0600, consistently.

    Raises:
        FileExistsError: The target is there already.
        ConfigError: The source is no database, or is damaged.
    """
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600))
    try:
        _copy(source, draft)
        os.link(draft, target)  # fails where there is a file, and never shows half a copy
    finally:
        draft.unlink()


def _copy(source: Path, target: Path) -> None:
    reading, writing = sqlite3.connect(source), sqlite3.connect(target)
    try:
        reading.backup(writing)
    except sqlite3.DatabaseError as error:
        raise ConfigError(f"cannot be copied ({error})", file=str(source)) from error
    finally:
        writing.close()
        reading.close()
