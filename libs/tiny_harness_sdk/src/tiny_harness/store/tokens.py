"""Bearer tokens, kept by their digests, as plain functions of a connection like those in `transactions`."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from sqlalchemy import Connection

from tiny_harness.ext.task import ParticipantKind
from tiny_harness.store import statements as sql
from tiny_harness.store.port import KeptToken
from tiny_harness.store.transactions import from_millis, to_age


def add_token(
    connection: Connection,
    token_id: str,
    digest: str,
    participant_id: str,
    kind: ParticipantKind,
    note: str,
    lifetime: timedelta | None,
) -> None:
    """Keep a token (`Store.add_token`); a repeat, after an answer that was lost, finds it there."""
    if connection.execute(sql.FIND_TOKEN, {"token_digest": digest}).first() is not None:
        return
    now = connection.execute(sql.NOW).scalar_one()
    row = {
        "token_id": token_id,
        "digest": digest,
        "participant_id": participant_id,
        "kind": kind,
        "note": note,
        "created_at": now,
        "expires_at": None if lifetime is None else now + to_age(lifetime),
        "revoked_at": None,
    }
    connection.execute(sql.INSERT_TOKEN, row)


def find_token(connection: Connection, digest: str) -> KeptToken | None:
    """Find a token by its digest (`Store.find_token`)."""
    row = connection.execute(sql.FIND_TOKEN, {"token_digest": digest}).first()
    return _kept(row) if row else None


def tokens(connection: Connection) -> Sequence[KeptToken]:
    """List all tokens (`Store.tokens`)."""
    return [_kept(row) for row in connection.execute(sql.TOKENS)]


def revoke_token(connection: Connection, token_id: str) -> bool:
    """Revoke a token (`Store.revoke_token`)."""
    now = connection.execute(sql.NOW).scalar_one()
    return connection.execute(sql.REVOKE_TOKEN, {"token": token_id, "now": now}).rowcount > 0


def _kept(row: Any) -> KeptToken:
    return KeptToken(
        token_id=row.token_id,
        participant_id=row.participant_id,
        kind=row.kind,
        note=row.note,
        created_at=from_millis(row.created_at),
        expires_at=None if row.expires_at is None else from_millis(row.expires_at),
        revoked_at=None if row.revoked_at is None else from_millis(row.revoked_at),
        is_expired=row.expires_at is not None and row.expires_at <= row.now,
    )
