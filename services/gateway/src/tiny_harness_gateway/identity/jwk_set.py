"""Reads a JWK set: the public keys in it that can check signatures (RFC 7517). Pure."""

import json
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import jwt
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

MIN_RSA_BITS: Final = 2048

_FITTING: Final[Mapping[tuple[str, str], frozenset[str]]] = {
    ("RSA", ""): frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"}),
    ("EC", "P-256"): frozenset({"ES256"}),
    ("EC", "P-384"): frozenset({"ES384"}),
    ("EC", "P-521"): frozenset({"ES512"}),
    ("OKP", "Ed25519"): frozenset({"EdDSA"}),
}
"""How a key of a type and on a curve can sign. A secret is not here, so it fits nothing."""

_PRIVATE: Final = frozenset({"d", "k"})
"""A key with one of these is no public key, whoever published it."""


@dataclass(frozen=True, slots=True)
class IssuerKey:
    """A public key."""

    kid: str | None
    algorithms: frozenset[str]
    """What it may have signed with: as its type, its curve and what it says of itself allow."""
    key: Any
    """As `cryptography` has it."""


def read_set(body: bytes) -> dict[str | None, IssuerKey]:
    """Read the keys of a set, by their ids; what cannot check a signature is left out.

    Raises:
        ValueError: It is no such set, or has no such key.
    """
    try:
        given = json.loads(body)["keys"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ValueError("this is no JWK set") from None
    found = [_read_key(entry) for entry in given] if isinstance(given, list) else []
    keys = {key.kid: key for key in found if key is not None}
    if not keys:
        raise ValueError("this JWK set has no public key that can check signatures")
    return keys


def _read_key(entry: Any) -> IssuerKey | None:
    if not isinstance(entry, dict) or _PRIVATE & entry.keys() or entry.get("use", "sig") != "sig":
        return None
    kid, algorithms = entry.get("kid"), _algorithms(entry)
    if not isinstance(kid, str | None) or not algorithms:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a short key, which is left out below
            key = jwt.PyJWK(entry).key
    except (jwt.PyJWTError, ValueError, TypeError):
        return None
    if isinstance(key, RSAPublicKey) and key.key_size < MIN_RSA_BITS:
        return None
    return IssuerKey(kid, algorithms, key)


def _algorithms(entry: Mapping[str, Any]) -> frozenset[str]:
    able = _FITTING.get((str(entry.get("kty")), str(entry.get("crv", ""))), frozenset[str]())
    return able & {str(entry["alg"])} if "alg" in entry else able
