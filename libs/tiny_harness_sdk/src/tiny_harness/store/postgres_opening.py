"""Opens the store on PostgreSQL once its server is there and its tables fit, and migrates them."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final, TypeVar

from pydantic import SecretStr
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from tiny_harness.errors import ConfigError, Unavailable
from tiny_harness.settings import StoreSettings
from tiny_harness.store.migrate import Migrated, check_revision, migrate_tables
from tiny_harness.store.postgres import PostgresStore
from tiny_harness.store.postgres_engine import is_misconfigured, open_postgres_engine, place_of
from tiny_harness.store.postgres_fault import CLOSED_DOORS, FAULTS, Fault, detail_of, fault_of, state_of

T = TypeVar("T")

START_PATIENCE_S: Final = 15.0
"""How long a server may take to be there: whoever starts everything at once starts it, too."""
START_INTERVAL_S: Final = 0.5

ONE_MIGRATION: Final = text("SELECT pg_advisory_xact_lock(hashtextextended('tiny-harness migration', 0))")

log = logging.getLogger(__name__)


@asynccontextmanager
async def open_postgres(url: SecretStr, settings: StoreSettings) -> AsyncGenerator[PostgresStore]:
    """Open the store while the block runs.

    Raises:
        ConfigError: The server does not let us in, or the tables are not those of this version.
        Unavailable: The server cannot be reached.
    """
    store = PostgresStore(open_postgres_engine(url, settings), settings.timeout)
    try:
        await _once_reached(url, lambda: _check(store.engine))
        yield store
    finally:
        await store.close()


async def migrate_postgres(url: SecretStr, settings: StoreSettings) -> Migrated:
    """Bring the tables up to this version; who comes at the same time waits, and finds it done.

    Raises:
        ConfigError: The server does not let us in, or the tables are those of a version that does not fit.
        Unavailable: The server cannot be reached.
    """
    engine = open_postgres_engine(url, settings, is_job=True)
    try:
        return await _once_reached(url, lambda: _migrate(engine))
    finally:
        await engine.dispose()


async def _check(engine: AsyncEngine) -> None:
    async with engine.connect() as connection:
        await connection.run_sync(check_revision)


async def _migrate(engine: AsyncEngine) -> Migrated:
    async with engine.begin() as connection:
        await connection.execute(ONE_MIGRATION)
        return await connection.run_sync(migrate_tables)


async def _once_reached(url: SecretStr, work: Callable[[], Awaitable[T]]) -> T:
    """Do something as soon as the server is there."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + START_PATIENCE_S
    while True:
        try:
            return await work()
        except FAULTS as error:
            _refuse_if_final(url, error)
            if loop.time() > deadline:
                raise Unavailable(f"the store at {place_of(url)} cannot be reached ({detail_of(error)})") from error
            log.info("the store is not there yet: %s", detail_of(error))
        await asyncio.sleep(START_INTERVAL_S)


def _refuse_if_final(url: SecretStr, error: BaseException) -> None:
    if is_misconfigured(error) or state_of(error) in CLOSED_DOORS:
        raise ConfigError(f"does not let us into {place_of(url)} ({detail_of(error)})", key="store.url") from error
    if fault_of(error) is Fault.OURS:
        raise error
