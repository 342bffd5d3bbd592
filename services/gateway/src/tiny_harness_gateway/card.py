"""The agent card: what this harness is, where it listens and which extensions it speaks."""

import hashlib
import json
import logging
import time
from email.utils import formatdate
from typing import Final

from a2a.server.request_handlers.response_helpers import agent_card_to_dict
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentExtension,
    AgentInterface,
    AgentSkill,
    HTTPAuthSecurityScheme,
    SecurityRequirement,
    SecurityScheme,
    StringList,
)
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from tiny_harness._version import __version__
from tiny_harness.contracts import Sender
from tiny_harness.errors import Unavailable
from tiny_harness.ext import commands, status, stream, supervision, task
from tiny_harness.ext.commands import CommandsParams
from tiny_harness.settings import Settings
from tiny_harness.store import Store

log = logging.getLogger(__name__)

RPC_PATH: Final = "/rpc"
REST_PATH: Final = "/rest"
CARD_PATH: Final = "/.well-known/agent-card.json"

_EXTENSIONS: Final = (
    (task.URI, "A task's name, goal, criteria, participants and lifecycle, in Task.metadata."),
    (status.URI, "Why a task is INPUT_REQUIRED, in Task.metadata and status updates."),
    (commands.URI, "Slash commands, listed in params; the reply to one names it in its metadata."),
    (stream.URI, "Cursors to resume streams from, receipts, idempotency keys; token deltas when activated."),
    (supervision.URI, "How a supervised task stands with its worker: queue, reminders, stalled, expired; AckTask."),
)

NO_COMMANDS: Final = CommandsParams()
CATALOGUE_AGE_S: Final = 3.0
"""How old the list of commands may be."""


_SCHEMES: Final = {
    "local": HTTPAuthSecurityScheme(scheme="Bearer", description="The token in the harness's home."),
    "tokens": HTTPAuthSecurityScheme(scheme="Bearer", description="A token that this harness's operator has made."),
    "jwt": HTTPAuthSecurityScheme(
        scheme="Bearer", bearer_format="JWT", description="A token of your identity provider."
    ),
}
"""How callers prove who they are, by `[auth] mode`; with `none` they do not."""


def build_card(
    settings: Settings, offered: CommandsParams = NO_COMMANDS, caller: Sender | None = None, *, has_push: bool = False
) -> AgentCard:
    """Build the card of a gateway whose engine offers these commands; for a caller, the extended card."""
    base = settings.server.url
    card = AgentCard(
        name="tiny-harness",
        description="A durable agent: a conversation is a task that stays open until you complete or cancel it.",
        version=__version__,
        supported_interfaces=[
            AgentInterface(url=base + RPC_PATH, protocol_binding="JSONRPC", protocol_version="1.0"),
            AgentInterface(url=base + REST_PATH, protocol_binding="HTTP+JSON", protocol_version="1.0"),
        ],
        capabilities=AgentCapabilities(
            streaming=True,
            push_notifications=has_push,
            extended_agent_card=True,
            extensions=[_extension(uri, text, offered, caller) for uri, text in _EXTENSIONS],
        ),
        default_input_modes=["text/plain", "application/json"],
        default_output_modes=["text/plain"],
        skills=[
            AgentSkill(
                id="conversation",
                name="Conversation",
                description="Talks, remembers, and waits for you.",
                tags=["conversation"],
            )
        ],
    )
    if settings.auth.mode in _SCHEMES:
        bearer = SecurityScheme(http_auth_security_scheme=_SCHEMES[settings.auth.mode])
        card.security_schemes["bearer"].CopyFrom(bearer)
        card.security_requirements.append(SecurityRequirement(schemes={"bearer": StringList()}))
    return card


def _extension(uri: str, description: str, offered: CommandsParams, caller: Sender | None) -> AgentExtension:
    extension = AgentExtension(uri=uri, description=description)
    if uri == commands.URI:
        extension.params.update(offered.model_dump(mode="json"))
    if uri == task.URI and caller is not None:
        extension.params.update({"caller": caller.model_dump(mode="json")})
    return extension


class Cards:
    """Serves the card with ETag, Last-Modified and Cache-Control (the SDK sends no Last-Modified)."""

    def __init__(self, settings: Settings, store: Store, *, has_push: bool = False) -> None:
        self._settings = settings
        self._store = store
        self._has_push = has_push
        self._looked_at = -CATALOGUE_AGE_S
        self._digest: str | None = None
        self._show(NO_COMMANDS)

    async def serve(self, request: Request) -> Response:
        """Answer the card, or 304 to a client that has it."""
        await self._look()
        known = [tag.strip() for tag in request.headers.get("if-none-match", "").split(",")]
        if self._headers["ETag"] in known or "*" in known:
            return Response(status_code=304, headers=self._headers)
        return JSONResponse(self._body, headers=self._headers)

    async def extended(self, caller: Sender) -> AgentCard:
        """Build the card for somebody who is known: it says who they are here."""
        await self._look()
        return build_card(self._settings, self._offered, caller, has_push=self._has_push)

    async def _look(self) -> None:
        """Take the engine's catalogue up if there is a new one; while the store is away the card stays as it is."""
        now = time.monotonic()
        if now - self._looked_at < CATALOGUE_AGE_S:
            return
        self._looked_at = now
        try:
            found = await self._store.current_catalogue()
        except Unavailable as error:
            log.warning("the card may be old: %s", error.reason)
            return
        if found is not None and found[0] != self._digest:
            self._digest = found[0]
            self._show(CommandsParams.model_validate_json(found[1]))

    def _show(self, offered: CommandsParams) -> None:
        self._offered = offered
        self._body = agent_card_to_dict(build_card(self._settings, offered, has_push=self._has_push))
        digest = hashlib.sha256(json.dumps(self._body, sort_keys=True).encode()).hexdigest()
        self._headers = {
            "ETag": f'W/"{digest}"',
            "Last-Modified": formatdate(time.time(), usegmt=True),
            "Cache-Control": "public, max-age=60",
        }
