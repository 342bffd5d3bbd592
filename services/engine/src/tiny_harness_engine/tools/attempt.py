"""One call on its way out. It rides in a context variable from the call to the transport, through MCP's client.

What the transports write down here is the only thing that can tell whether a request may have reached a server.
"""

from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final


@dataclass(slots=True, eq=False)
class Attempt:
    """A call, as its transport sees it."""

    give_up_at: float
    """By the event loop's clock: from then on nobody waits for the answer."""
    is_sent: bool = False
    """The first byte may have left this process."""
    is_abandoned: bool = False
    """Nobody waits any more: it must not be sent if it was not yet."""
    is_refused: bool = False
    """The server said before it ran anything that it will not."""
    is_passing: bool = True
    """What went wrong may be right the next time."""
    fault: str = ""
    """What went wrong on the way, in words for an operator."""


ATTEMPT: Final[ContextVar[Attempt | None]] = ContextVar("attempt", default=None)
"""The call that the running code is part of; none: a listing, a handshake."""
