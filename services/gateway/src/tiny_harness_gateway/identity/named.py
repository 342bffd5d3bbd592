"""The modes in which callers name themselves: `local`, for who holds the home's token, and `none`, for everybody."""

import hmac
from contextlib import AbstractAsyncContextManager

from tiny_harness_gateway.identity.credentials import Denied, Identity, idle


class HomeToken:
    """Mode `local`: the token in the home, or the Unix socket.

    Args:
        token: The home's; without one only the socket lets in.
    """

    def __init__(self, token: str | None) -> None:
        self._token = token

    def running(self) -> AbstractAsyncContextManager[None]:
        return idle()

    async def identify(self, bearer: str | None, *, by_socket: bool) -> Identity | Denied:
        if by_socket or self._is_held(bearer):
            return Identity(id=None)
        return Denied("a bearer token is needed: it is in the file `token` of the harness's home")

    def _is_held(self, bearer: str | None) -> bool:
        if self._token is None or bearer is None:
            return False
        return hmac.compare_digest(bearer.encode(), self._token.encode())


class Nobody:
    """Mode `none`: everybody is believed."""

    def running(self) -> AbstractAsyncContextManager[None]:
        return idle()

    async def identify(self, bearer: str | None, *, by_socket: bool) -> Identity | Denied:
        del bearer, by_socket
        return Identity(id=None)
