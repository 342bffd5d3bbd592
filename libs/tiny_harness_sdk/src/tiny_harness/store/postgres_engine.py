"""How a connection to PostgreSQL comes about: address, TLS, time limits, what each session is told."""

import ssl
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit

import asyncpg
from pydantic import SecretStr
from sqlalchemy import event
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from tiny_harness.settings import StoreSettings

LIFETIME_S: Final = 1800
"""After which a connection is made anew, so that load spreads over servers that were added."""
CONNECTIONS_OF_A_JOB: Final = 1
_KEEPALIVE: Final = {"tcp_keepalives_idle": "30", "tcp_keepalives_interval": "10", "tcp_keepalives_count": "3"}
"""A machine that vanished lets go of its locks after a minute."""


def open_postgres_engine(url: SecretStr, settings: StoreSettings, *, is_job: bool = False) -> AsyncEngine:
    """Make an engine; it connects when it is first used.

    Args:
        url: The database, as libpq writes it: several hosts, `sslmode` and `target_session_attrs` are understood.
        settings: Its limits.
        is_job: One connection whose statements may take as long as they want, for migrations.
    """
    address = _with_certificates(url.get_secret_value(), settings)
    limit = str(round(settings.timeout * 1000))
    limits = {"statement_timeout": limit, "idle_in_transaction_session_timeout": limit}
    session = {"application_name": "tiny-harness", **_KEEPALIVE, **({} if is_job else limits)}

    async def connect() -> Any:
        limit_s: Any = settings.timeout  # the driver's types know whole seconds only
        return await asyncpg.connect(address, timeout=limit_s, server_settings=session)

    engine = create_async_engine(
        "postgresql+asyncpg://",
        async_creator=connect,
        pool_size=CONNECTIONS_OF_A_JOB if is_job else settings.max_connections,
        max_overflow=0,
        pool_timeout=settings.timeout,
        pool_recycle=LIFETIME_S,
        pool_use_lifo=True,
        hide_parameters=True,
    )
    event.listen(engine.sync_engine, "before_cursor_execute", _without_nul, retval=True)
    return engine


def place_of(url: SecretStr) -> str:
    """Name a database to people: no user, no password, no options."""
    parts = urlsplit(url.get_secret_value())
    return f"{parts.netloc.rpartition('@')[2]}{parts.path}"


def is_misconfigured(error: BaseException) -> bool:
    """Whether the address has an option that does not exist, or TLS failed over certificates: no waiting mends it."""
    return isinstance(error, ssl.SSLError | asyncpg.ClientConfigurationError)


def _with_certificates(url: str, settings: StoreSettings) -> str:
    if settings.ca_file is None:
        return url
    parts = urlsplit(url)
    query = {"sslmode": "verify-full", **dict(parse_qsl(parts.query)), "sslrootcert": str(settings.ca_file)}
    return parts._replace(query=urlencode(query)).geturl()


def _without_nul(
    _connection: object, _cursor: object, statement: str, parameters: Any, _context: object, is_many: bool
) -> tuple[str, Any]:
    """Replace NUL, which PostgreSQL's text cannot hold, in what outsiders named: a commit must never fail for it."""
    if is_many:
        return statement, [_cleaned(row) for row in parameters]
    return statement, _cleaned(parameters)


def _cleaned(row: Sequence[Any]) -> Sequence[Any]:
    if any(isinstance(value, str) and "\0" in value for value in row):
        return tuple(value.replace("\0", "\ufffd") if isinstance(value, str) else value for value in row)
    return row
