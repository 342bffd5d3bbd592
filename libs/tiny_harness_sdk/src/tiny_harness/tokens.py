"""Bearer tokens of `[auth] mode = "tokens"`: 256 random bits, of which only the digest is kept."""

import hashlib
import re
import secrets
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from tiny_harness.errors import ConfigError
from tiny_harness.ext.task import AGENT_ID, PARTICIPANT_ID_PATTERN, ParticipantKind
from tiny_harness.ids import new_id

if TYPE_CHECKING:
    from tiny_harness.store import Store

RANDOM_BYTES: Final = 32
_PREFIX: Final = "tht_"
"""Lets scanners and people see what a string is that turns up where it should not."""
_TOKEN: Final = re.compile(_PREFIX + r"[A-Za-z0-9_-]{43}")


@dataclass(frozen=True, slots=True)
class NewToken:
    """A token that was just made. Nobody can show it again."""

    token_id: str
    """Names it to people, as for `Store.revoke_token`."""
    token: str


async def create_token(
    store: "Store",
    participant: str,
    kind: ParticipantKind = "human",
    *,
    note: str = "",
    lifetime: timedelta | None = None,
) -> NewToken:
    """Make a token and keep its digest.

    Args:
        store: Of the harness that it lets in to.
        participant: Who speaks with it.
        kind: What they are.
        note: What it is for.
        lifetime: How long it lasts; without one, until it is revoked.

    Raises:
        ConfigError: That is no participant's id, or the agent's own.
    """
    if not re.fullmatch(PARTICIPANT_ID_PATTERN, participant) or participant == AGENT_ID:
        raise ConfigError(f"a participant has letters, digits and ._:@- only, 128 at most, and is not {AGENT_ID}")
    made = NewToken(new_id(), _PREFIX + secrets.token_urlsafe(RANDOM_BYTES))
    await store.add_token(made.token_id, digest_of(made.token), participant, kind, note, lifetime)
    return made


def is_token(text: str) -> bool:
    """Whether this can be a token of ours at all."""
    return _TOKEN.fullmatch(text) is not None


def digest_of(token: str) -> str:
    """Give the SHA-256 digest that is kept of a token. A token is random, so it needs no salt and no slow hash."""
    return hashlib.sha256(token.encode()).hexdigest()
