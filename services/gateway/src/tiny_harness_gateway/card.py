"""The agent card: what this harness is, where it listens and which extensions it speaks."""

import hashlib
import json
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
from tiny_harness.ext import status, stream, task
from tiny_harness.settings import Settings

RPC_PATH: Final = "/rpc"
REST_PATH: Final = "/rest"
CARD_PATH: Final = "/.well-known/agent-card.json"

_EXTENSIONS: Final = (
    (task.URI, "A task's name, goal, criteria, participants and lifecycle, in Task.metadata."),
    (status.URI, "Why a task is INPUT_REQUIRED, in Task.metadata and status updates."),
    (stream.URI, "Cursors to resume streams from, receipts, idempotency keys; token deltas when activated."),
)


def build_card(settings: Settings) -> AgentCard:
    """Build the card of a gateway."""
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
            push_notifications=False,
            extensions=[AgentExtension(uri=uri, description=text) for uri, text in _EXTENSIONS],
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
    if settings.auth.mode == "local":
        bearer = SecurityScheme(http_auth_security_scheme=HTTPAuthSecurityScheme(scheme="Bearer"))
        card.security_schemes["bearer"].CopyFrom(bearer)
        card.security_requirements.append(SecurityRequirement(schemes={"bearer": StringList()}))
    return card


class CardEndpoint:
    """Serves the card with ETag, Last-Modified and Cache-Control (the SDK sends no Last-Modified)."""

    def __init__(self, card: AgentCard, started_at: float) -> None:
        self._body = agent_card_to_dict(card)
        digest = hashlib.sha256(json.dumps(self._body, sort_keys=True).encode()).hexdigest()
        self._headers = {
            "ETag": f'W/"{digest}"',
            "Last-Modified": formatdate(started_at, usegmt=True),
            "Cache-Control": "public, max-age=60",
        }

    async def serve(self, request: Request) -> Response:
        """Answer the card, or 304 to a client that has it."""
        known = [tag.strip() for tag in request.headers.get("if-none-match", "").split(",")]
        if self._headers["ETag"] in known or "*" in known:
            return Response(status_code=304, headers=self._headers)
        return JSONResponse(self._body, headers=self._headers)
