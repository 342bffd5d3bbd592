"""What a failure of PostgreSQL means: the one place that knows its SQLSTATEs (PostgreSQL manual, appendix A)."""

import enum
from typing import Final

import asyncpg
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout

FAULTS: Final = (SQLAlchemyError, asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError)
"""Everything that an operation on the database may raise. The driver's own come out of connecting only."""

CLOSED_DOORS: Final = frozenset({"28000", "28P01", "3D000", "42501"})
"""Not let in: wrong user, wrong password, no such database, no right."""
_READ_ONLY: Final = "25006"
_CONFLICTS: Final = frozenset({"40001", "40P01"})
_FOREIGN_KEY: Final = "23503"


class Fault(enum.Enum):
    """What to do about it."""

    CONFLICT = enum.auto()
    """Somebody else was first: made again, the work finds what they wrote."""
    STALE = enum.auto()
    """The connection had died, perhaps long ago: a new one may work."""
    MOVED = enum.auto()
    """This server takes no writes any more: another one does."""
    GONE = enum.auto()
    """The database cannot do it now."""
    OURS = enum.auto()
    """A mistake in a statement or its values."""


def fault_of(error: BaseException) -> Fault:
    """Say what a failure means."""
    if isinstance(error, DBAPIError) and error.connection_invalidated:
        return Fault.STALE
    if isinstance(error, SQLAlchemyError) and not isinstance(error, DBAPIError):
        return Fault.GONE if isinstance(error, PoolTimeout) else Fault.OURS
    return _meaning(state_of(error))


def state_of(error: BaseException) -> str:
    """Find the SQLSTATE of a failure, "" if it has none."""
    source = error.orig if isinstance(error, DBAPIError) else error
    return getattr(source, "sqlstate", None) or ""


def detail_of(error: BaseException) -> str:
    """Describe a failure to operators: no statement, no value of one."""
    source = error.orig if isinstance(error, DBAPIError) else error
    words = str(source).splitlines()
    return words[0] if words else type(source).__name__


def _meaning(state: str) -> Fault:
    if state in _CONFLICTS or state.startswith("23"):
        return Fault.CONFLICT
    if state == _READ_ONLY:
        return Fault.MOVED
    if state in CLOSED_DOORS:
        return Fault.GONE
    return Fault.OURS if state.startswith(("22", "42")) else Fault.GONE
