"""The store on SQLite: one writer thread, a few reader threads, one hop per operation.

Synchronous SQLAlchemy on threads of our own costs a third of the CPU of its async twin (DESIGN: storage). The
write-ahead log lets readers go on while the writer writes, and other processes read and write the same file.
"""

import asyncio
import fcntl
import os
import shutil
import sqlite3
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import QueuePool

from tiny_harness.errors import ConfigError, Unavailable
from tiny_harness.store.sql import SqlStore

T = TypeVar("T")

READERS: Final = 4
BUSY_TIMEOUT_S: Final = 5.0
"""How long a write waits for another process's."""


LOCK_FLAGS: Final = os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC


class SqliteStore(SqlStore):
    """Tasks in one SQLite file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writer = ThreadPoolExecutor(1, "store-writer")
        self._readers = ThreadPoolExecutor(READERS, "store-reader")
        self._write_engine = open_engine(path, size=1, begin="BEGIN IMMEDIATE")
        self._read_engine = open_engine(path, size=READERS, begin="BEGIN")

    async def backup(self, path: Path) -> None:
        await asyncio.get_running_loop().run_in_executor(self._readers, copy_database, self._path, path)

    @asynccontextmanager
    async def alone(self, name: str) -> AsyncGenerator[bool]:
        holder = os.open(self._path.with_name(f"{self._path.name}.{name}.lock"), LOCK_FLAGS, 0o600)
        try:
            yield _hold(holder)
        finally:
            os.close(holder)  # and with it the lock

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

    _look = _read

    async def _run(
        self, executor: ThreadPoolExecutor, engine: Engine, work: Callable[..., T], arguments: tuple[Any, ...]
    ) -> T:
        return await asyncio.get_running_loop().run_in_executor(executor, _transaction, engine, work, arguments)


def _hold(holder: int) -> bool:
    try:
        fcntl.flock(holder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


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
