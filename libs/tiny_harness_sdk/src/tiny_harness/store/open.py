"""Opens the store that the settings name."""

import asyncio
import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pydantic import SecretStr
from sqlalchemy.exc import DatabaseError

from tiny_harness.errors import ConfigError
from tiny_harness.settings import Settings, is_postgres_url
from tiny_harness.store.port import Store
from tiny_harness.store.sqlite import SqliteStore, open_engine

if TYPE_CHECKING:
    from tiny_harness.store.migrate import Migrated

VARIABLE: Final = "TINY_HARNESS_STORE_URL"


def store_url(settings: Settings, environ: Mapping[str, str] = os.environ) -> SecretStr | None:
    """Name the PostgreSQL to use: the variable's, which may hold a password, else the configuration's.

    Returns:
        The address, `None` for the SQLite file.

    Raises:
        ConfigError: The variable is no such address; it is not shown.
    """
    url = environ.get(VARIABLE)
    if not url:
        return None if settings.store.url is None else SecretStr(settings.store.url)
    if not is_postgres_url(url):
        raise ConfigError(f"{VARIABLE} is no address such as postgresql://user:password@host:5432/database")
    return SecretStr(url)


@asynccontextmanager
async def open_store(settings: Settings, environ: Mapping[str, str] = os.environ) -> AsyncGenerator[Store]:
    """Open the store; closes it at the end. A file is created and migrated (0600) where needed, a server's is not.

    Raises:
        ConfigError: It cannot be made or used, or a server's tables are not those of this version.
        Unavailable: The server cannot be reached.
    """
    url = store_url(settings, environ)
    if url is not None:
        from tiny_harness.store.postgres_opening import open_postgres  # late: local mode needs no driver

        async with open_postgres(url, settings.store) as shared:
            yield shared
        return
    path = settings.store.sqlite_path
    await asyncio.to_thread(_prepare, path)
    store = SqliteStore(path)
    try:
        yield store
    finally:
        await store.close()


async def migrate_store(settings: Settings, environ: Mapping[str, str] = os.environ) -> "Migrated":
    """Bring the store's tables up to this version, once for all processes; what is there already stays.

    Raises:
        ConfigError: It cannot be used, or was written by a version that does not fit.
        Unavailable: The server cannot be reached.
    """
    url = store_url(settings, environ)
    if url is None:
        return await asyncio.to_thread(_prepare, settings.store.sqlite_path)
    from tiny_harness.store.postgres_opening import migrate_postgres

    return await migrate_postgres(url, settings.store)


def _prepare(path: Path) -> "Migrated":
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise ConfigError(f"cannot be opened ({error.strerror})", file=str(path), key="store.sqlite_path") from error
    from tiny_harness.store.migrate import migrate_file  # late: Alembic is needed here only

    engine = open_engine(path, size=1, begin="BEGIN IMMEDIATE")
    try:
        return migrate_file(engine, path)
    except DatabaseError as error:
        raise ConfigError(
            f"cannot be used as a store ({error.orig})", file=str(path), key="store.sqlite_path"
        ) from None
    finally:
        engine.dispose()
