"""Signed calls: what is signed, with which secret, and when a receiver believes it (DESIGN: hooks).

The signed text is eight lines, joined by line feeds: `v1`, the method, the path with its query, the key's id, the
timestamp in Unix seconds, the delivery id, the attempt, and the SHA-256 of the body in hex. Whoever calls signs with
the first secret of a key; whoever receives takes either, so that secrets can be changed without a gap.
"""

import hashlib
import heapq
import hmac
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import SecretStr

from tiny_harness.errors import SignatureRefused
from tiny_harness.hooks.wire import (
    ATTEMPT_HEADER,
    DELIVERY_HEADER,
    KEY_HEADER,
    SECRET_VARIABLE_PREFIX,
    SIGNATURE_HEADER,
    SIGNATURE_VERSION,
    TIMESTAMP_HEADER,
    TIMESTAMP_WINDOW_S,
)

MAX_SECRETS: Final = 2
"""Secrets that a key may have at a time: the new one and the old one."""
MAX_SEEN: Final = 100_000
"""Signatures that a receiver remembers, in about 20 MB; beyond, it refuses calls until some are too old to repeat."""

_KEY_ID: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9])?")
_TIMESTAMP: Final = re.compile(r"[0-9]{1,12}")
_DELIVERY: Final = re.compile(r"[!-~]{1,128}")
_ATTEMPT: Final = re.compile(r"[1-9][0-9]{0,2}")

Secrets = Callable[[str], Sequence[SecretStr]]
"""Gives the secrets of a key, the newest first; none if there is no such key."""


@dataclass(frozen=True, slots=True)
class SignedCall:
    """What a believed signature vouches for, beside the body."""

    key_id: str
    delivery_id: str
    attempt: int


def secret_variable(key_id: str) -> str:
    """Name the environment variable that holds a key's secrets."""
    return SECRET_VARIABLE_PREFIX + re.sub(r"[-.]", "_", key_id).upper()


def secrets_for(key_id: str) -> tuple[SecretStr, ...]:
    """Read a key's secrets from the environment: one, or two separated by a comma, the one to sign with first."""
    if not _KEY_ID.fullmatch(key_id):
        return ()
    words = (word.strip() for word in os.environ.get(secret_variable(key_id), "").split(","))
    return tuple(SecretStr(word) for word in words if word)[:MAX_SECRETS]


def sign(
    secret: SecretStr,
    *,
    method: str,
    path: str,
    key_id: str,
    timestamp: int,
    delivery_id: str,
    attempt: int,
    body: bytes,
) -> dict[str, str]:
    """Sign a call.

    Args:
        secret: The first of `secrets_for(key_id)`.
        method: Of HTTP, in capitals.
        path: As it stands in the request line: percent-encoded, with `?` and the query if there is one.
        key_id: Which secret this is.
        timestamp: Now, in Unix seconds.
        delivery_id: Names the call; the same on a retry.
        attempt: 1, and 2 on a retry.
        body: The bytes that are sent.

    Returns:
        The headers to send.
    """
    text = _signed_text(method, path, key_id, str(timestamp), delivery_id, str(attempt), body)
    return {
        KEY_HEADER: key_id,
        TIMESTAMP_HEADER: str(timestamp),
        DELIVERY_HEADER: delivery_id,
        ATTEMPT_HEADER: str(attempt),
        SIGNATURE_HEADER: _signature(secret, text),
    }


class Verifier:
    """Believes a call, or does not; believes each signature once."""

    def __init__(
        self, secrets: Secrets = secrets_for, *, now: Callable[[], float] = time.time, max_seen: int = MAX_SEEN
    ) -> None:
        self._secrets = secrets
        self._now = now
        self._seen = _Seen(max_seen)

    def check(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> SignedCall:
        """Check a call's signature and take note of it.

        Args:
            method: Of HTTP, in capitals.
            path: As it stands in the request line, with the query.
            headers: Names in any case.
            body: The bytes that arrived.

        Raises:
            SignatureRefused: Unsigned, of an unknown key, wrong, too old, too new, or seen before.
        """
        found = {name.lower(): value for name, value in headers.items()}
        key_id = _header(found, KEY_HEADER, _KEY_ID)
        timestamp = _header(found, TIMESTAMP_HEADER, _TIMESTAMP)
        delivery_id = _header(found, DELIVERY_HEADER, _DELIVERY)
        attempt = _header(found, ATTEMPT_HEADER, _ATTEMPT)
        secrets = self._secrets(key_id)
        if not secrets:
            raise SignatureRefused("the key is not known here")
        text = _signed_text(method, path, key_id, timestamp, delivery_id, attempt, body)
        shown = found.get(SIGNATURE_HEADER.lower(), "").encode()
        # Compared with every secret and in constant time: how long it takes tells nothing.
        matches = [hmac.compare_digest(_signature(secret, text).encode(), shown) for secret in secrets]
        if not any(matches):
            raise SignatureRefused("the signature does not match")
        now = self._now()
        if abs(now - int(timestamp)) > TIMESTAMP_WINDOW_S:
            raise SignatureRefused(f"the timestamp is more than {TIMESTAMP_WINDOW_S} s away from this clock")
        # Until then the timestamp would be believed again, which for a fast clock is later than 300 s from now.
        self._seen.add(shown, now, int(timestamp) + TIMESTAMP_WINDOW_S)
        return SignedCall(key_id, delivery_id, int(attempt))


class _Seen:
    """Signatures that were believed, each until its timestamp is too old to be believed again."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._until: list[tuple[float, bytes]] = []
        self._known: set[bytes] = set()

    def add(self, signature: bytes, now: float, until: float) -> None:
        while self._until and self._until[0][0] < now:
            self._known.discard(heapq.heappop(self._until)[1])
        if signature in self._known:
            raise SignatureRefused("the signature was used before")
        if len(self._known) >= self._capacity:  # forgetting one instead would let it be used again
            raise SignatureRefused("too many signed calls in a short time")
        self._known.add(signature)
        heapq.heappush(self._until, (until, signature))


def _header(headers: Mapping[str, str], name: str, pattern: re.Pattern[str]) -> str:
    value = headers.get(name.lower())
    if value is None:
        raise SignatureRefused(f"the call is not signed: {name} is missing")
    if not pattern.fullmatch(value):
        raise SignatureRefused(f"{name} is malformed")
    return value


def _signed_text(
    method: str, path: str, key_id: str, timestamp: str, delivery_id: str, attempt: str, body: bytes
) -> bytes:
    digest = hashlib.sha256(body).hexdigest()
    lines = (SIGNATURE_VERSION, method, path, key_id, timestamp, delivery_id, attempt, digest)
    return "\n".join(lines).encode()


def _signature(secret: SecretStr, text: bytes) -> str:
    return f"{SIGNATURE_VERSION}={hmac.new(secret.get_secret_value().encode(), text, hashlib.sha256).hexdigest()}"
