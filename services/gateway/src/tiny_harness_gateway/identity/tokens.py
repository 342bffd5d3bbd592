"""Mode `tokens`: bearer tokens that the store knows by their digests."""

from contextlib import AbstractAsyncContextManager

from tiny_harness.store import Store
from tiny_harness.tokens import digest_of, is_token
from tiny_harness_gateway.identity.credentials import Denied, Identity, idle


class StoredTokens:
    """Asks the store at each call, so that a token that is revoked lets nobody in from then on."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def running(self) -> AbstractAsyncContextManager[None]:
        return idle()

    async def identify(self, bearer: str | None, *, by_socket: bool) -> Identity | Denied:
        del by_socket  # a proxy may stand behind it, who speaks for strangers
        if bearer is None:
            return Denied("a bearer token is needed: `tiny-harness tokens create` makes one")
        kept = await self._store.find_token(digest_of(bearer)) if is_token(bearer) else None
        if kept is None:
            return Denied("this token is not known here")
        if kept.revoked_at is not None:
            return Denied("this token was revoked")
        if kept.is_expired:
            return Denied("this token has expired")
        return Identity(kept.participant_id, kept.kind)
