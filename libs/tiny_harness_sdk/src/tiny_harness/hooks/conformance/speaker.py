"""What both transports give to the rules that do not care which one it is."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from tiny_harness.hooks.conformance.contexts import Probe
from tiny_harness.hooks.conformance.peer import Peer


@dataclass(frozen=True, slots=True)
class Reply:
    """What a call brought."""

    probe: Probe
    delivery_id: str
    patch: Mapping[str, Any] | None = None
    error: Mapping[str, Any] | None = None
    """`code`, `message` and `data` of an error that the service answered; over MCP the same in our words."""
    fault: str | None = None
    """Why it is no answer by the contract."""
    is_late: bool = False

    @property
    def code(self) -> int | None:
        """The error's code."""
        return self.error["code"] if self.error else None

    @property
    def said(self) -> tuple[Any, Any]:
        """What a repetition must answer too."""
        return self.patch, self.error


class Speaker(Protocol):
    """Speaks one transport."""

    async def offer(self) -> "Offered | str":
        """Ask what the service has; or why that cannot be known.

        Raises:
            Silence: There is no answer.
        """
        ...

    async def ask(self, probe: Probe, delivery_id: str, attempt: int = 1) -> Reply:
        """Make a good call."""
        ...

    def harmless(self) -> bytes:
        """Make the body of a request that changes nothing, never the same twice."""
        ...


@dataclass(frozen=True, slots=True)
class Offered:
    """What a service says that it has."""

    name: str
    points: tuple[str, ...]
    commands: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()


@dataclass(slots=True)
class Run:
    """One run: the service, and what is known of it so far."""

    peer: Peer
    speaker: Speaker
    offered: Offered | None = None
    replies: list[Reply] = field(default_factory=list[Reply])
    """Of good calls."""
    provoked: list[Reply] = field(default_factory=list[Reply])
    """Of calls whose words ask for an abort."""

    @property
    def every_reply(self) -> list[Reply]:
        """All of them."""
        return [*self.replies, *self.provoked]
