"""Who calls: the identity that everything behind relies on (DESIGN: security)."""

import re
from dataclasses import dataclass
from typing import Final

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from tiny_harness.contracts import Sender
from tiny_harness.errors import Unavailable
from tiny_harness.ext.task import AGENT_ID, PARTICIPANT_ID_PATTERN
from tiny_harness.settings import Settings, login_name
from tiny_harness_gateway.errors import http_response, plain_response
from tiny_harness_gateway.identity import Credentials, Denied, Identity
from tiny_harness_gateway.webui import PAGE_PATH

CALLER: Final = "tiny_harness.caller"
"""Key in the ASGI scope under which the authenticated `Sender` stands."""

OPEN_PATHS: Final = frozenset({"/.well-known/agent-card.json", "/healthz", "/readyz", "/", PAGE_PATH.rstrip("/")})
_ID: Final = re.compile(PARTICIPANT_ID_PATTERN)


@dataclass(frozen=True, slots=True)
class Foreign:
    """A caller who asserts to be somebody else than their credential says."""

    id: str
    """Who they are."""


class Authenticator:
    """Puts the caller into the scope, or answers 401, or 403 to who speaks in another's name."""

    def __init__(self, app: ASGIApp, settings: Settings, credentials: Credentials) -> None:
        self._app = app
        self._credentials = credentials
        self._default_id = (settings.server.participant or login_name()) if settings.auth.mode == "local" else ""
        self._tells_token = settings.auth.mode in ("tokens", "jwt")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not is_open(scope["path"]):
            found = await self._authenticate(scope)
            if isinstance(found, Response):
                return await found(scope, receive, send)
            scope[CALLER] = found
        return await self._app(scope, receive, send)

    async def _authenticate(self, scope: Scope) -> Sender | Response:
        headers = Headers(scope=scope)
        bearer = _bearer(headers)
        try:
            identity = await self._credentials.identify(bearer, by_socket=came_by_socket(scope))
        except Unavailable as error:
            return http_response(error)
        found = identity if isinstance(identity, Denied) else _sender(identity, headers, self._default_id)
        match found:
            case Sender():
                return found
            case Foreign():
                told = f"this credential is {found.id}'s: it speaks for nobody else"
                return plain_response(403, "foreign_participant", told)
            case Denied():
                return self._unauthorised(found.reason, has_token=bearer is not None)

    def _unauthorised(self, reason: str, *, has_token: bool) -> Response:
        # RFC 6750, section 3.1: a request without a token is told nothing but the scheme.
        is_wrong = self._tells_token and has_token
        challenge = 'Bearer error="invalid_token"' if is_wrong else "Bearer"
        return plain_response(401, "unauthenticated", reason, {"WWW-Authenticate": challenge})


def is_open(path: str) -> bool:
    """Whether everybody may read what stands there: the card, probes, and the page, which signs in by itself."""
    return path in OPEN_PATHS or path.startswith(PAGE_PATH)


def came_by_socket(scope: Scope) -> bool:
    """Whether a request came over the Unix socket, which only its owner can open."""
    server = scope.get("server")
    return server is not None and server[1] is None


def _bearer(headers: Headers) -> str | None:
    """Read the bearer token; `None` if there is none, or more than one credential."""
    given = headers.getlist("authorization")
    scheme, _, token = given[0].partition(" ") if len(given) == 1 else ("", "", "")
    return token.strip() if scheme.lower() == "bearer" and token.strip() else None


def _sender(identity: Identity, headers: Headers, default_id: str) -> Sender | Foreign | Denied:
    """Put together who calls, of what the credential says and what they say themselves."""
    asserted = headers.get("x-participant-id")
    if identity.id is not None and asserted not in (None, identity.id):
        return Foreign(identity.id)
    name = identity.id or asserted or default_id
    if not _ID.fullmatch(name):
        return Denied("X-Participant-Id is missing or malformed")
    if name == AGENT_ID:
        return Denied(f"nobody may speak as {AGENT_ID}")
    kind = identity.kind or headers.get("x-participant-kind", "human")
    if kind not in ("human", "agent"):
        return Denied("X-Participant-Kind must be human or agent")
    return Sender(id=name, kind=kind)
