"""The first thing that every request meets: is it for us, and from a page of ours?"""

from collections.abc import Iterable
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from tiny_harness_gateway.errors import plain_response

LOOPBACK_NAMES: Final = frozenset({"localhost", "127.0.0.1", "[::1]", "::1"})


class OriginGuard:
    """Refuses a Host that is neither the base URL's nor a loopback name, and a foreign Origin, with 403."""

    def __init__(self, app: ASGIApp, base_url: str, cors_origins: Iterable[str]) -> None:
        self._app = app
        base = urlsplit(base_url)
        self._hosts = LOOPBACK_NAMES | {_name(base.netloc)}
        self._origins = {f"{base.scheme}://{base.netloc}", *(origin.rstrip("/") for origin in cors_origins)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        headers = Headers(scope=scope)
        host, origin = headers.get("host", ""), headers.get("origin")
        if _name(host) not in self._hosts:
            return await plain_response(403, "forbidden_host", "this host is not served here")(scope, receive, send)
        if origin is not None and not self._is_ours(origin.rstrip("/"), host):
            return await plain_response(403, "forbidden_origin", "this origin may not call")(scope, receive, send)
        return await self._app(scope, receive, send)

    def _is_ours(self, origin: str, host: str) -> bool:
        return origin in self._origins or (origin == f"http://{host}" and _name(host) in LOOPBACK_NAMES)


def _name(host: str) -> str:
    """Cut the port off a host."""
    name, colon, port = host.rpartition(":")
    return (name if colon and port.isdecimal() else host).lower()
