"""Who calls: the identity that everything behind relies on (DESIGN: security)."""

import hmac
import re
from typing import Final

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from tiny_harness.contracts import Sender
from tiny_harness.ext.task import AGENT_ID, PARTICIPANT_ID_PATTERN
from tiny_harness.settings import Settings, login_name
from tiny_harness_gateway.errors import plain_response

CALLER: Final = "tiny_harness.caller"
"""Key in the ASGI scope under which the authenticated `Sender` stands."""

OPEN_PATHS: Final = frozenset({"/.well-known/agent-card.json", "/healthz", "/readyz"})
_ID: Final = re.compile(PARTICIPANT_ID_PATTERN)


class Authenticator:
    """Puts the caller into the scope, or answers 401.

    Mode `local`: who holds the token, or reached the Unix socket, names themselves. Mode `none`: everyone names
    themselves, and must.
    """

    def __init__(self, app: ASGIApp, settings: Settings, token: str | None) -> None:
        self._app = app
        self._mode = settings.auth.mode
        self._token = token
        self._default_id = settings.server.participant or login_name()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] not in OPEN_PATHS:
            found = self._authenticate(scope)
            if isinstance(found, Response):
                return await found(scope, receive, send)
            scope[CALLER] = found
        return await self._app(scope, receive, send)

    def _authenticate(self, scope: Scope) -> Sender | Response:
        headers = Headers(scope=scope)
        if self._mode == "local" and not came_by_socket(scope) and not self._holds_token(headers):
            return _unauthorised("a bearer token is needed: it is in the file `token` of the harness's home")
        name = headers.get("x-participant-id") or (self._default_id if self._mode == "local" else "")
        if not _ID.fullmatch(name):
            return _unauthorised("X-Participant-Id is missing or malformed")
        if name == AGENT_ID:
            return _unauthorised(f"nobody may speak as {AGENT_ID}")
        kind = headers.get("x-participant-kind", "human")
        if kind not in ("human", "agent"):
            return _unauthorised("X-Participant-Kind must be human or agent")
        return Sender(id=name, kind=kind)

    def _holds_token(self, headers: Headers) -> bool:
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if self._token is None or scheme.lower() != "bearer":
            return False
        return hmac.compare_digest(given.strip().encode(), self._token.encode())


def came_by_socket(scope: Scope) -> bool:
    """Whether a request came over the Unix socket, which only its owner can open."""
    server = scope.get("server")
    return server is not None and server[1] is None


def _unauthorised(reason: str) -> Response:
    return plain_response(401, "unauthenticated", reason, {"WWW-Authenticate": "Bearer"})
