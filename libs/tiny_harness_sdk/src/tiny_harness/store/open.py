"""Opens the store that the settings name, migrated."""

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from sqlalchemy.exc import DatabaseError

from tiny_harness.errors import ConfigError
from tiny_harness.settings import Settings
from tiny_harness.store.port import Store
from tiny_harness.store.sqlite import SqliteStore, open_engine


@asynccontextmanager
async def open_store(settings: Settings) -> AsyncGenerator[Store]:
    """Open the store, creating and migrating its file (0600) where needed; closes it at the end.

    Raises:
        ConfigError: The file cannot be made or used.
    """
    path = settings.store.sqlite_path
    await asyncio.to_thread(_prepare, path)
    store = SqliteStore(path)
    try:
        yield store
    finally:
        await store.close()


def _prepare(path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise ConfigError(f"cannot be opened ({error.strerror})", file=str(path), key="store.sqlite_path") from error
    from tiny_harness.store.migrate import migrate  # late: Alembic is needed here only

    engine = open_engine(path, size=1, begin="BEGIN IMMEDIATE")
    try:
        migrate(engine, path)
    except DatabaseError as error:
        raise ConfigError(
            f"cannot be used as a store ({error.orig})", file=str(path), key="store.sqlite_path"
        ) from None
    finally:
        engine.dispose()
