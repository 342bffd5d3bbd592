"""What engines say of themselves, as plain functions of a connection like those in `transactions`."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from sqlalchemy import Connection

from tiny_harness.store import statements as sql
from tiny_harness.store.port import EngineReport
from tiny_harness.store.transactions import to_age

FORGOTTEN_AFTER: Final = timedelta(days=1)
"""How long the report of a silent engine is kept."""


def save_catalogue(connection: Connection, digest: str, body: str) -> None:
    """Make a catalogue the current one (`Store.save_catalogue`)."""
    newest = connection.execute(sql.NEWEST_CATALOGUE).first()
    if newest is not None and newest.digest == digest:
        return
    now = connection.execute(sql.NOW).scalar_one()
    if newest is not None:
        now = max(now, newest.at + 1)  # two within a millisecond, or a clock that was set back
    if not connection.execute(sql.TOUCH_CATALOGUE, {"known": digest, "now": now}).rowcount:
        connection.execute(sql.INSERT_CATALOGUE, {"digest": digest, "body": body, "at": now})


def current_catalogue(connection: Connection) -> tuple[str, str] | None:
    """Load the catalogue that was saved last (`Store.current_catalogue`)."""
    row = connection.execute(sql.NEWEST_CATALOGUE).first()
    return (row.digest, row.body) if row else None


def report_engine(connection: Connection, engine_id: str, digest: str, health: str) -> None:
    """Replace an engine's report, and drop those of the silent (`Store.report_engine`)."""
    connection.execute(sql.DELETE_ENGINES, {"age_ms": to_age(FORGOTTEN_AFTER)})
    now = connection.execute(sql.NOW).scalar_one()
    said = {"engine": engine_id, "known": digest, "word": health, "now": now}
    if not connection.execute(sql.UPDATE_ENGINE, said).rowcount:
        connection.execute(sql.INSERT_ENGINE, {"engine_id": engine_id, "digest": digest, "health": health, "at": now})


def engines(connection: Connection, seen_within: timedelta) -> Sequence[EngineReport]:
    """List the engines that reported lately (`Store.engines`)."""
    rows = connection.execute(sql.ENGINES, {"age_ms": to_age(seen_within)})
    return [
        EngineReport(row.engine_id, row.digest, row.health, timedelta(milliseconds=max(0, row.age_ms))) for row in rows
    ]
