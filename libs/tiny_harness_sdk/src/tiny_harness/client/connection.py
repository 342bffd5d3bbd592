"""Opens a connection to a harness: one HTTP client with the participant's headers, and the A2A client on it."""

import ipaddress
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from urllib.parse import urlsplit, urlunsplit

import httpx
from a2a.client import A2ACardResolver, ClientConfig, create_client
from a2a.client.errors import AgentCardResolutionError
from a2a.types import AgentCard

from tiny_harness.address import Address
from tiny_harness.client.calls import CALL_TIMEOUT_S, Calls, offers_of
from tiny_harness.client.refusals import HTTP_UNAUTHENTICATED, HTTP_UNAVAILABLE, translated
from tiny_harness.client.session import HarnessClient
from tiny_harness.errors import ConnectionLost, ServerRefused, SignInRefused, Unavailable
from tiny_harness.ext.task import ParticipantKind


@asynccontextmanager
async def connect(
    address: Address,
    participant: str | None = None,
    kind: ParticipantKind = "human",
    *,
    token: str | None = None,
    heal_s: float = 20.0,
) -> AsyncGenerator[HarnessClient]:
    """Connect to a harness as a participant, and sign in if there is a token.

    Args:
        address: Where it is.
        participant: Who calls; `None`: whoever the token says, which the harness then tells.
        kind: Whether a person or a program calls; a token that says it wins.
        token: Bearer token, instead of the address's.
        heal_s: Seconds for which later calls may try again while the harness is away.

    Raises:
        ConnectionLost: Nothing answers at the address.
        SignInRefused: It does not let us in.
        ServerRefused: What answers is no harness.
    """
    if token is not None:
        address = replace(address, token=token)
    async with _http(address, participant, kind) as http:
        card = _rooted(await _card(http, address.url), address.url)
        config = ClientConfig(httpx_client=http, supported_protocol_bindings=["JSONRPC"])
        try:
            client = await create_client(card, config)
        except ValueError as error:
            raise ServerRefused("the server offers no JSON-RPC interface of A2A") from error
        calls = Calls(client, partial(_card, http, address.url))
        if card.capabilities.extended_agent_card and _may_be_refused(address, participant, card):
            participant = await calls.sign_in() or participant
        yield HarnessClient(calls, participant or "", heal_s, offers_of(card))


def _may_be_refused(address: Address, participant: str | None, card: AgentCard) -> bool:
    """Whether to sign in at once; who reaches a harness's Unix socket without a token is mostly let in."""
    if participant is None or address.token:
        return True
    return address.socket is None and len(card.security_requirements) > 0


def _http(address: Address, participant: str | None, kind: ParticipantKind) -> httpx.AsyncClient:
    headers: dict[str, str] = {"X-Participant-Kind": kind}
    if participant is not None:
        headers["X-Participant-Id"] = participant
    if address.token:
        headers["Authorization"] = f"Bearer {address.token}"
    transport = httpx.AsyncHTTPTransport(uds=str(address.socket)) if address.socket else None
    return httpx.AsyncClient(
        headers=headers,
        transport=transport,
        timeout=CALL_TIMEOUT_S,
        # A proxy from the environment must not see what stays on this machine.
        trust_env=not _is_loopback(address.url),
    )


async def _card(http: httpx.AsyncClient, url: str) -> AgentCard:
    with translated():
        try:
            return await A2ACardResolver(http, url.rstrip("/")).get_agent_card()
        except AgentCardResolutionError as error:
            raise _card_error(error, url) from error


def _card_error(error: AgentCardResolutionError, url: str) -> ConnectionLost | Unavailable | ServerRefused:
    if error.status_code == HTTP_UNAVAILABLE:
        return Unavailable("the harness cannot answer now")
    if error.status_code == HTTP_UNAUTHENTICATED:
        return SignInRefused(f"{url} wants credentials for its card", error.status_code)
    if error.status_code is not None:
        return ServerRefused(f"{url} answered {error.status_code} when asked for its card", status=error.status_code)
    if isinstance(error.__cause__, httpx.RequestError):
        return ConnectionLost(f"nothing answers at {url}: {error.__cause__}")
    return ServerRefused(f"what answers at {url} is no A2A server")


def _rooted(card: AgentCard, url: str) -> AgentCard:
    """Point a card's interfaces at the address that we were given: credentials go nowhere else."""
    origin = urlsplit(url)
    for interface in card.supported_interfaces:
        found = urlsplit(interface.url)
        interface.url = urlunsplit((origin.scheme, origin.netloc, found.path, found.query, ""))
    return card


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
