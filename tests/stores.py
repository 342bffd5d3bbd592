"""Statements of a test's own, on whichever database the store is."""

import sqlite3
from contextlib import closing
from typing import Any

from tests.postgres import run_statement
from tiny_harness.settings import Settings


async def execute(settings: Settings, statement: str) -> list[Any]:
    """Run one statement on the store's database; gives its rows."""
    if settings.store.url is not None:
        return [tuple(row) for row in await run_statement(settings.store.url, statement)]
    with closing(sqlite3.connect(settings.store.sqlite_path, timeout=10)) as connection, connection:
        return connection.execute(statement).fetchall()
