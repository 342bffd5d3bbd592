"""The store on PostgreSQL: a pool of connections that any number of processes may have on one database.

A write is a transaction under the lock of the row that it decides from; where there is no row yet, the second of two
fails on its key and is made again, and finds what the first one wrote. Reads make one statement, or see one moment.
What the database cannot do now is `Unavailable`, however it fails: gone, frozen, full, taken over by another server.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from tiny_harness.errors import ConfigError, Unavailable
from tiny_harness.store.postgres_fault import FAULTS, Fault, detail_of, fault_of
from tiny_harness.store.sql import SqlStore

T = TypeVar("T")

ATTEMPTS: Final = 5
"""Transactions that an operation may take: others come between, or a connection turns out to be dead."""
IDLE_HOLDER_MS: Final = 90_000
"""How long somebody who holds a name may be silent: a frozen process must not hold it for ever."""

TRY_HOLD: Final = text("SELECT pg_try_advisory_xact_lock(hashtextextended(:name, 0))")

log = logging.getLogger(__name__)


class PostgresStore(SqlStore):
    """Tasks in a PostgreSQL database."""

    def __init__(self, engine: AsyncEngine, timeout_s: float) -> None:
        self.engine: Final = engine
        self._timeout_s = timeout_s
        self._statements = engine.execution_options(isolation_level="AUTOCOMMIT")
        self._moments = engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
        self._is_gone = False

    async def backup(self, path: Path) -> None:
        raise ConfigError("a store on PostgreSQL is backed up by the means of that server, such as pg_dump")

    def free_bytes(self) -> int | None:
        return None

    @asynccontextmanager
    async def alone(self, name: str) -> AsyncGenerator[bool]:
        connection = await self._guarded(self._begin_holding)
        try:
            yield await self._guarded(self._hold, connection, name)
        finally:
            await self._let_go(connection)

    async def close(self) -> None:
        await self.engine.dispose()

    async def _write(self, work: Callable[..., T], *arguments: Any) -> T:
        return await self._guarded(_transaction, self.engine, work, arguments)

    async def _read(self, work: Callable[..., T], *arguments: Any) -> T:
        return await self._guarded(_transaction, self._statements, work, arguments)

    async def _look(self, work: Callable[..., T], *arguments: Any) -> T:
        return await self._guarded(_transaction, self._moments, work, arguments)

    async def _begin_holding(self) -> AsyncConnection:
        return await self.engine.connect()

    async def _hold(self, connection: AsyncConnection, name: str) -> bool:
        await connection.execute(text(f"SET LOCAL idle_in_transaction_session_timeout = {IDLE_HOLDER_MS}"))
        return bool((await connection.execute(TRY_HOLD, {"name": name})).scalar_one())

    async def _let_go(self, connection: AsyncConnection) -> None:
        try:
            async with asyncio.timeout(self._timeout_s):
                await connection.close()
        except FAULTS as error:  # the server let go by itself
            log.info("a connection that held a name was lost: %s", detail_of(error))

    async def _guarded(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """Do something with the database, again where that helps, within the time that it may take."""
        try:
            async with asyncio.timeout(self._timeout_s):
                answer = await self._repeated(work, arguments)
        except FAULTS as error:
            if fault_of(error) is Fault.OURS:
                raise
            self._tell_gone(error)
            raise Unavailable("the store cannot answer now") from error
        self._tell_back()
        return answer

    async def _repeated(self, work: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        for _ in range(ATTEMPTS - 1):
            try:
                return await work(*arguments)
            except FAULTS as error:
                fault = fault_of(error)
                if fault is Fault.MOVED:  # every other connection leads there, too
                    await self.engine.dispose()
                elif fault not in (Fault.CONFLICT, Fault.STALE):
                    raise
        return await work(*arguments)

    def _tell_gone(self, error: BaseException) -> None:
        if not self._is_gone:
            log.warning("the store cannot answer: %s", detail_of(error))
        self._is_gone = True

    def _tell_back(self) -> None:
        if self._is_gone:
            log.info("the store answers again")
        self._is_gone = False


async def _transaction(engine: AsyncEngine, work: Callable[..., T], arguments: tuple[Any, ...]) -> T:
    async with engine.begin() as connection:
        return await connection.run_sync(work, *arguments)
