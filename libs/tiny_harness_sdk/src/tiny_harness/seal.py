"""Seals what passes through Temporal and Redis: who reaches those can neither read a message nor speak for anybody.

A ring of keys: the first one seals, all of them open. Pure but for `read_ring`; the codec of `temporal` and the bus use
it (DESIGN: security; ADR 15).
"""

import base64
import binascii
import hashlib
import logging
import os
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

from tiny_harness.errors import ConfigError
from tiny_harness.settings import Settings

VARIABLE: Final = "TINY_HARNESS_SEAL_KEYS"
UNSEALED: Final = "unsealed"
"""Stands in a ring for what is not sealed: it opens, too."""
FILE_NAME: Final = "seal.keys"
KEY_BYTES: Final = 32
_ID_BYTES: Final = 4
_NONCE_BYTES: Final = 12

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SealRing:
    """Keys that seal and open. Without any, nothing is sealed, and only what is not sealed opens."""

    keys: tuple[bytes, ...] = field(default=(), repr=False)
    """Of 32 bytes each; the first one seals."""
    opens_unsealed: bool = True
    """Whether what is not sealed is taken as well."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing is sealed."""
        return not self.keys

    def seal(self, plain: bytes, place: str) -> bytes:
        """Seal for one place: it opens nowhere else, so nobody can carry a message from one task to another."""
        key, nonce = self.keys[0], os.urandom(_NONCE_BYTES)
        return _id(key) + nonce + _cipher(key, place).encrypt(nonce, plain, None)

    def open(self, sealed: bytes, place: str) -> bytes | None:
        """Open what was sealed for a place; `None` if no key fits or a bit was changed."""
        head, nonce = sealed[:_ID_BYTES], sealed[_ID_BYTES : _ID_BYTES + _NONCE_BYTES]
        for key in self.keys:
            if _id(key) == head and len(nonce) == _NONCE_BYTES:
                try:
                    return _cipher(key, place).decrypt(nonce, sealed[_ID_BYTES + _NONCE_BYTES :], None)
                except InvalidTag:
                    continue
        return None


UNSEALED_RING: Final = SealRing()


def ring_of(settings: Settings, environ: Mapping[str, str] = os.environ) -> SealRing:
    """Read the ring that a process seals with: the variable's, else that of the Temporal server of our own.

    Raises:
        ConfigError: See `read_ring`.
    """
    temporal = settings.temporal
    if temporal.mode == "embedded" and not temporal.embedded.persist and not environ.get(VARIABLE, "").strip():
        return SealRing((secrets.token_bytes(KEY_BYTES),), opens_unsealed=False)
    ring = read_ring(settings.temporal_database if temporal.mode == "embedded" else None, environ)
    if ring.is_empty:
        log.warning("%s is not set: who reaches Temporal or Redis reads every message and may speak for all", VARIABLE)
    elif ring.opens_unsealed:
        log.info("what is not sealed is taken, too, because the ring says %s", UNSEALED)
    return ring


def read_ring(beside: Path | None, environ: Mapping[str, str] = os.environ) -> SealRing:
    """Read the ring: from the environment, else from a file of ours, made (0600) at the first start.

    Args:
        beside: The Temporal database that belongs to us: the file is next to it. `None`: Temporal is elsewhere, and
            without the variable nothing is sealed.
        environ: Where the variable is looked up.

    Raises:
        ConfigError: The ring is malformed, or the file cannot be used.
    """
    words = environ.get(VARIABLE, "")
    if words.strip():
        return parse_ring(words, VARIABLE)
    if beside is None:
        return UNSEALED_RING
    path = beside.with_name(FILE_NAME)
    if not os.path.lexists(path):
        try:
            # A database without a ring is older than sealing: its histories go on, and new ones are sealed.
            _make_file(path, opens_unsealed=_holds_data(beside))
        except FileExistsError:  # another start was first
            pass
        except OSError as error:
            raise ConfigError(f"cannot be made ({error.strerror})", file=str(path)) from error
    return parse_ring(_read_file(path), str(path))


def parse_ring(words: str, origin: str) -> SealRing:
    """Parse keys in base64, divided by commas, blanks or lines; a line may be a comment.

    Raises:
        ConfigError: A word is neither a key nor `unsealed`, or no key is there; no key is ever shown.
    """
    plain = re.sub(r"(?m)^\s*#.*$", "", words)
    found = [word for word in re.split(r"[\s,]+", plain) if word]
    keys = tuple(_key(word, place, origin) for place, word in enumerate(found, 1) if word != UNSEALED)
    if not keys:
        raise ConfigError("holds no key; `openssl rand -base64 32` makes one", file=origin)
    return SealRing(keys, opens_unsealed=UNSEALED in found)


def make_key() -> str:
    """Make a key, as it stands in a ring."""
    return base64.b64encode(secrets.token_bytes(KEY_BYTES)).decode()


def _key(word: str, place: int, origin: str) -> bytes:
    try:
        key = base64.b64decode(word.replace("-", "+").replace("_", "/"), validate=True)
    except binascii.Error:
        key = b""
    if len(key) != KEY_BYTES:
        raise ConfigError(f"entry {place} is no key of {KEY_BYTES} bytes in base64", file=origin)
    return key


def _make_file(path: Path, *, opens_unsealed: bool) -> None:
    """Write the file whole under another name first: a crash never leaves half a ring."""
    lines = ["# Seals what Temporal keeps: the first key seals, all open. Without this file its histories are lost."]
    lines += [make_key()]
    if opens_unsealed:
        lines += ["# What was not sealed before this file was made opens, too, until this word is removed:", UNSEALED]
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(handle, "w") as file:
            file.write("\n".join(lines) + "\n")
            file.flush()
            os.fsync(handle)
        os.link(draft, path, follow_symlinks=False)
    finally:
        draft.unlink()


def _read_file(path: Path) -> str:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        with os.fdopen(handle, encoding="ascii") as file:
            if os.fstat(handle).st_uid != os.geteuid():
                raise ConfigError("belongs to another user", file=str(path))
            os.fchmod(handle, 0o600)
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot be read ({error})", file=str(path)) from error


def _holds_data(path: Path) -> bool:
    return path.exists() and path.stat().st_size > 0


def _id(key: bytes) -> bytes:
    """Name a key without telling anything of it."""
    return hashlib.sha256(b"tiny-harness seal" + key).digest()[:_ID_BYTES]


def _cipher(key: bytes, place: str) -> AESGCM:
    """Make the cipher of one place, whose key is its own: so its random nonces are counted per place, too."""
    return AESGCM(HKDFExpand(SHA256(), KEY_BYTES, place.encode()).derive(key))
