"""Mode `jwt`: tokens that an identity provider has signed (RFC 7519, RFC 8725)."""

import re
from contextlib import AbstractAsyncContextManager
from typing import Any, Final

import jwt

from tiny_harness.ext.task import PARTICIPANT_ID_PATTERN
from tiny_harness.settings import AuthSettings
from tiny_harness_gateway.identity.credentials import Denied, Identity
from tiny_harness_gateway.identity.jwk_set import IssuerKey
from tiny_harness_gateway.identity.keys import IssuerKeys

_ID: Final = re.compile(PARTICIPANT_ID_PATTERN)

_REASONS: Final[tuple[tuple[type[Exception], str], ...]] = (
    (jwt.ExpiredSignatureError, "this token has expired"),
    (jwt.ImmatureSignatureError, "this token is not valid yet"),
    (jwt.InvalidIssuedAtError, "this token is malformed"),
    (jwt.InvalidIssuerError, "this token is of another issuer"),
    (jwt.InvalidAudienceError, "this token is meant for another audience"),
    (jwt.MissingRequiredClaimError, "this token lacks a claim that is needed"),
    (jwt.InvalidSignatureError, "this token's signature is wrong"),
)
"""What may be wrong with a token, in words. The first that fits counts; the rest are malformed."""
_MALFORMED: Final = "this is no token that this harness can read"


class SignedTokens:
    """Believes who the issuer says that the holder is."""

    def __init__(self, settings: AuthSettings, keys: IssuerKeys) -> None:
        self._settings = settings
        self._keys = keys

    def running(self) -> AbstractAsyncContextManager[None]:
        return self._keys.running()

    async def identify(self, bearer: str | None, *, by_socket: bool) -> Identity | Denied:
        del by_socket  # a proxy may stand behind it, who speaks for strangers
        if bearer is None:
            return Denied("a bearer token of the identity provider is needed")
        head = _head(bearer)
        algorithm = head.get("alg")
        # Nothing of a token is used before it is known to be signed as configured; `none` and secrets never are.
        if "crit" in head or algorithm not in self._settings.algorithms:
            return Denied(f"this token is not signed by one of {', '.join(self._settings.algorithms)}")
        key = await self._keys.find(head.get("kid"))
        if key is None or algorithm not in key.algorithms:
            return Denied("this token is signed with a key that the issuer does not have")
        return self._holder(bearer, key, algorithm)

    def _holder(self, bearer: str, key: IssuerKey, algorithm: str) -> Identity | Denied:
        settings = self._settings
        try:
            claims = jwt.decode(
                bearer,
                key.key,
                algorithms=[algorithm],
                audience=settings.audience,
                issuer=settings.issuer,
                leeway=settings.leeway,
                options={"require": ["exp", "iss", "aud", settings.participant_claim]},
            )
        except jwt.PyJWTError as error:
            found = (words for kind, words in _REASONS if isinstance(error, kind))
            return Denied(next(found, _MALFORMED))
        return self._identity(claims)

    def _identity(self, claims: dict[str, Any]) -> Identity | Denied:
        name = claims[self._settings.participant_claim]
        if not isinstance(name, str) or not _ID.fullmatch(name):
            return Denied(f"the claim {self._settings.participant_claim} holds no participant id")
        if self._settings.kind_claim is None:
            return Identity(name)
        kind = claims.get(self._settings.kind_claim)
        if kind not in ("human", "agent"):
            return Denied(f"the claim {self._settings.kind_claim} is neither human nor agent")
        return Identity(name, kind)


def _head(bearer: str) -> dict[str, Any]:
    """Read a token's header, of which nothing is believed yet; empty if there is none."""
    try:
        return jwt.get_unverified_header(bearer)
    except jwt.PyJWTError:
        return {}
