"""An agent's card: fetched within bounds, checked, and kept for as long as the agent says (A2A 1.0 §8).

A card is a stranger's text. It may narrow what is done, and never lead anywhere but to the configured origin.
"""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import httpx
from a2a.client.card_resolver import parse_agent_card
from a2a.types import AgentCard, AgentInterface
from a2a.utils.constants import AGENT_CARD_WELL_KNOWN_PATH, TransportProtocol

from tiny_harness.ext import commands, status, stream, task
from tiny_harness.settings import AgentSettings
from tiny_harness_engine.agents.credential import credential_headers, read_secret
from tiny_harness_engine.agents.fault import PASSING_STATUSES, AgentFault, translated
from tiny_harness_engine.agents.http import origin
from tiny_harness_engine.tools.words import one_line

OK: Final = 200
NOT_MODIFIED: Final = 304
KNOWN_EXTENSIONS: Final = frozenset({task.URI, status.URI, commands.URI, stream.URI})
BINDINGS: Final = (TransportProtocol.JSONRPC.value, TransportProtocol.HTTP_JSON.value)
MAX_CARD_BYTES: Final = 256 * 1024
CARD_TIMEOUT_S: Final = 10.0
SHORTEST_AGE_S: Final = 30.0
DEFAULT_AGE_S: Final = 300.0
LONGEST_AGE_S: Final = 3_600.0


@dataclass(frozen=True, slots=True)
class CheckedCard:
    """A card that we can work with."""

    card: AgentCard
    """With those interfaces only that may be called."""
    headers: Mapping[str, str]
    """What every call carries: the credential, and who we are."""
    extensions: tuple[str, ...]
    """Extensions that the agent insists on."""
    is_harness: bool
    """Whether it is a tiny-harness, or speaks like one."""

    @property
    def streams(self) -> bool:
        """Whether its tasks can be followed."""
        return self.card.capabilities.streaming

    @property
    def is_idempotent(self) -> bool:
        """Whether it takes the same first message twice as one."""
        return any(extension.uri == stream.URI for extension in self.card.capabilities.extensions)


def check_card(card: AgentCard, settings: AgentSettings) -> CheckedCard:
    """Check that we can do what a card asks for.

    Raises:
        AgentFault: It demands an extension that we do not know, has no interface of ours at the configured origin, or
            wants a credential that we do not have.
    """
    required = tuple(extension.uri for extension in card.capabilities.extensions if extension.required)
    unknown = [uri for uri in required if uri not in KNOWN_EXTENSIONS]
    if unknown:
        raise AgentFault(
            "final", f"it demands an extension that is not known here: {one_line(', '.join(unknown), 200)}"
        )
    usable = AgentCard()
    usable.CopyFrom(card)
    del usable.supported_interfaces[:]
    usable.supported_interfaces.extend(_usable(list(card.supported_interfaces), settings.url))
    headers = credential_headers(card, read_secret(settings))
    is_harness = any(extension.uri == task.URI for extension in card.capabilities.extensions)
    if is_harness:
        headers["X-Participant-Kind"] = "agent"
    if settings.participant is not None:
        headers["X-Participant-Id"] = settings.participant
    return CheckedCard(usable, headers, required, is_harness)


def _usable(interfaces: list[AgentInterface], url: str) -> list[AgentInterface]:
    """Keep the interfaces that we speak, at the configured origin: nothing is sent anywhere else."""
    spoken = [each for each in interfaces if each.protocol_binding in BINDINGS and _is_current(each.protocol_version)]
    if not spoken:
        offered = [f"{each.protocol_binding} {each.protocol_version}".strip() for each in interfaces]
        shown = one_line(", ".join(offered), 200) or "nothing"
        raise AgentFault("final", f"it speaks neither JSONRPC nor HTTP+JSON of A2A 1.0; its card offers {shown}")
    found = [each for each in spoken if _leads_to(each.url, url)]
    if not found:
        raise AgentFault("final", f"its card leads to another server, {one_line(spoken[0].url, 200)}")
    return found


def _is_current(version: str) -> bool:
    return version.partition(".")[0] == "1"


def _leads_to(found: str, url: str) -> bool:
    try:
        parts = httpx.URL(found)
        return origin(found) == origin(url) and not parts.userinfo and not parts.query and not parts.fragment
    except httpx.InvalidURL:
        return False


@dataclass(frozen=True, slots=True)
class _Kept:
    card: CheckedCard
    etag: str
    until: float
    """On the monotonic clock: until then it is not asked for again."""


class CardBook:
    """One agent's card, kept between calls."""

    def __init__(self, settings: AgentSettings, http: httpx.AsyncClient) -> None:
        self._settings = settings
        self._http = http
        self._kept: _Kept | None = None

    async def card(self) -> CheckedCard:
        """Give the card, from the agent if what is kept is too old.

        Raises:
            AgentFault: It cannot be had, or not be worked with.
        """
        kept = self._kept
        if kept is not None and time.monotonic() < kept.until:
            return kept.card
        try:
            with translated():
                async with asyncio.timeout(min(CARD_TIMEOUT_S, self._settings.timeout)):
                    fresh = await self._fetch(kept)
        except AgentFault as fault:
            if fault.kind != "doubtful":
                raise
            raise AgentFault("passing", f"its card cannot be had: {fault.reason}") from fault  # asking did nothing
        self._kept = fresh
        return fresh.card

    def forget(self) -> None:
        """Ask for it again next time: the agent may have become another."""
        self._kept = None

    async def _fetch(self, kept: _Kept | None) -> _Kept:
        headers = {"If-None-Match": kept.etag} if kept is not None and kept.etag else {}
        url = f"{self._settings.url}{AGENT_CARD_WELL_KNOWN_PATH}"
        response = await self._http.get(url, headers=headers)
        until = time.monotonic() + _age_s(response.headers.get("Cache-Control", ""))
        if response.status_code == NOT_MODIFIED and kept is not None:
            return replace(kept, until=until)
        if response.status_code != OK:
            raise _refusal(response)
        if len(response.content) > MAX_CARD_BYTES:
            raise AgentFault("final", f"its card has more than {MAX_CARD_BYTES} bytes")
        try:
            card = parse_agent_card(response.json())
        except Exception as error:
            # What a stranger wrote may trip the parser in any way.
            raise AgentFault("final", f"its card cannot be read ({type(error).__name__})") from error
        return _Kept(check_card(card, self._settings), response.headers.get("ETag", ""), until)


def _refusal(response: httpx.Response) -> AgentFault:
    status = response.status_code
    kind = "passing" if status >= 500 or status in PASSING_STATUSES else "final"
    return AgentFault(kind, f"it answered HTTP {status} when it was asked for its card")


def _age_s(cache_control: str) -> float:
    """Read how long a card may be kept, within our own bounds."""
    for directive in cache_control.lower().split(","):
        name, _, value = directive.strip().partition("=")
        if name in ("no-store", "no-cache"):
            return SHORTEST_AGE_S
        if name == "max-age" and value.strip('"').isdecimal():
            return min(max(float(value.strip('"')), SHORTEST_AGE_S), LONGEST_AGE_S)
    return DEFAULT_AGE_S
