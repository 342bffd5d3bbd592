"""Chooses the way to know who calls that the settings name."""

from tiny_harness.settings import Settings
from tiny_harness.store import Store
from tiny_harness_gateway.identity.credentials import Credentials
from tiny_harness_gateway.identity.named import HomeToken, Nobody
from tiny_harness_gateway.identity.tokens import StoredTokens


def open_credentials(settings: Settings, store: Store, token: str | None) -> Credentials:
    """Make what knows callers by their credentials.

    Args:
        settings: Which mode.
        store: Where tokens are kept.
        token: The home's, of mode `local`.
    """
    match settings.auth.mode:
        case "local":
            return HomeToken(token)
        case "none":
            return Nobody()
        case "tokens":
            return StoredTokens(store)
        case "jwt":
            from tiny_harness_gateway.identity.jwt import SignedTokens  # late: other modes need no cryptography
            from tiny_harness_gateway.identity.keys import IssuerKeys, reader_of

            return SignedTokens(settings.auth, IssuerKeys(reader_of(settings.auth), settings.auth))
