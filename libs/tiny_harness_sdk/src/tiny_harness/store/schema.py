"""The tables. Migrations in `migrations/` create exactly these; a test compares the two.

Times are integers: milliseconds since 1970 UTC, read from the database's clock.
"""

from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import GenericFunction

metadata = MetaData()

tasks = Table(
    "tasks",
    metadata,
    Column("task_id", String(64), primary_key=True),
    Column("context_id", String(256), nullable=False),
    Column("state", String(32), nullable=False),
    Column("head", Integer, nullable=False),
    Column("snapshot", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    Index("tasks_by_state", "state", "task_id"),
    Index("tasks_by_context", "context_id"),
    Index("tasks_by_update", "updated_at", "task_id"),
)

task_participants = Table(
    "task_participants",
    metadata,
    Column("participant_id", String(128), primary_key=True),
    Column("task_id", String(64), ForeignKey("tasks.task_id", ondelete="CASCADE"), primary_key=True),
    Column("updated_at", BigInteger, nullable=False),
    Index("task_participants_by_update", "participant_id", "updated_at", "task_id"),
    Index("task_participants_by_task", "task_id"),
)

events = Table(
    "events",
    metadata,
    Column("task_id", String(64), ForeignKey("tasks.task_id", ondelete="CASCADE"), primary_key=True),
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("cause", String(128), nullable=False),
    Column("part", Integer, nullable=False),
    Column("kind", String(16), nullable=False),
    Column("payload", Text, nullable=False),
    Column("digest", String(64)),
    Column("at", BigInteger, nullable=False),
    UniqueConstraint("task_id", "cause", "part", name="events_by_cause"),
)

steps = Table(
    "steps",
    metadata,
    Column("task_id", String(64), ForeignKey("tasks.task_id", ondelete="CASCADE"), primary_key=True),
    Column("turn", Integer, primary_key=True, autoincrement=False),
    Column("step", Integer, primary_key=True, autoincrement=False),
    Column("record", Text, nullable=False),
    Column("at", BigInteger, nullable=False),
)

tool_calls = Table(
    "tool_calls",
    metadata,
    Column("task_id", String(64), ForeignKey("tasks.task_id", ondelete="CASCADE"), primary_key=True),
    Column("turn", Integer, primary_key=True, autoincrement=False),
    Column("step", Integer, primary_key=True, autoincrement=False),
    Column("call", Integer, primary_key=True, autoincrement=False),
    Column("claim", String(64)),
    Column("record", Text),
    Column("at", BigInteger, nullable=False),
)

task_keys = Table(
    "task_keys",
    metadata,
    Column("participant_id", String(128), primary_key=True),
    Column("key", String(256), primary_key=True),
    Column("task_id", String(64), nullable=False),
    Column("at", BigInteger, nullable=False),
    Index("task_keys_by_task", "task_id"),
)

cancel_requests = Table(
    "cancel_requests",
    metadata,
    Column("task_id", String(64), ForeignKey("tasks.task_id", ondelete="CASCADE"), primary_key=True),
    Column("requested_by", String(128), nullable=False),
    Column("at", BigInteger, nullable=False),
)

verdicts = Table(
    "verdicts",
    metadata,
    Column("task_id", String(64), ForeignKey("tasks.task_id", ondelete="CASCADE"), primary_key=True),
    Column("cause", String(128), primary_key=True),
    Column("part", Integer, primary_key=True, autoincrement=False),
    Column("point", String(64), nullable=False),
    Column("executor", String(256), nullable=False),
    Column("kind", String(16), nullable=False),
    Column("reason", Text, nullable=False),
    Column("ms", Integer, nullable=False),
    Column("at", BigInteger, nullable=False),
)

catalogue = Table(
    "catalogue",
    metadata,
    Column("digest", String(64), primary_key=True),
    Column("body", Text, nullable=False),
    Column("at", BigInteger, nullable=False),
)

engines = Table(
    "engines",
    metadata,
    Column("engine_id", String(256), primary_key=True),
    Column("digest", String(64), nullable=False),
    Column("health", Text, nullable=False),
    Column("at", BigInteger, nullable=False),
)

acknowledgements = Table(
    "acknowledgements",
    metadata,
    Column("task_id", String(64), ForeignKey("tasks.task_id", ondelete="CASCADE"), primary_key=True),
    Column("participant_id", String(128), primary_key=True),
    Column("at", BigInteger, nullable=False),
)

tokens = Table(
    "tokens",
    metadata,
    Column("token_id", String(64), primary_key=True),
    Column("digest", String(64), nullable=False, unique=True),
    Column("participant_id", String(128), nullable=False),
    Column("kind", String(16), nullable=False),
    Column("note", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger),
    Column("revoked_at", BigInteger),
)

beats = Table(
    "beats",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("body", Text, nullable=False),
    Column("at", BigInteger, nullable=False),
)

pushes = Table(
    "pushes",
    metadata,
    Column("task_id", String(64), ForeignKey("tasks.task_id", ondelete="CASCADE"), primary_key=True),
    Column("participant_id", String(128), primary_key=True),
    Column("config_id", String(128), primary_key=True),
    Column("url", Text, nullable=False),
    Column("secret", LargeBinary, nullable=False),
    Column("delivered_seq", Integer, nullable=False),
    Column("status", String(16), nullable=False),
    Column("failures", Integer, nullable=False),
    Column("at", BigInteger, nullable=False),
)

observers = Table(
    "observers",
    metadata,
    Column("observer", String(256), primary_key=True),
    Column("since", BigInteger, nullable=False),
)

observed = Table(
    "observed",
    metadata,
    Column("observer", String(256), ForeignKey("observers.observer", ondelete="CASCADE"), primary_key=True),
    Column("task_id", String(64), ForeignKey("tasks.task_id", ondelete="CASCADE"), primary_key=True),
    Column("seq", Integer, nullable=False),
    Index("observed_by_task", "task_id"),
)


class now_ms(GenericFunction[int]):
    """The database's clock, in milliseconds since 1970 UTC."""

    type = BigInteger()
    inherit_cache = True


@compiles(now_ms, "sqlite")
def _sqlite_now(element: Any, compiler: Any, **_: Any) -> str:
    del element, compiler
    return "CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER)"


@compiles(now_ms, "postgresql")
def _postgres_now(element: Any, compiler: Any, **_: Any) -> str:
    del element, compiler  # not now(), which stands still within a transaction that waited for a lock
    return "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)"
