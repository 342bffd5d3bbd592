"""What a credential says of its holder: the port between the middleware that asks and the modes that know."""

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Protocol

from tiny_harness.ext.task import ParticipantKind


@dataclass(frozen=True, slots=True)
class Identity:
    """Who holds a credential."""

    id: str | None
    """The participant; `None`: whoever holds it names themselves."""
    kind: ParticipantKind | None = None
    """What they are; `None`: they say it themselves."""


@dataclass(frozen=True, slots=True)
class Denied:
    """Why a credential lets nobody in."""

    reason: str
    """For its holder, who learns nothing from it about anybody else's."""


class Credentials(Protocol):
    """One way to know who calls."""

    def running(self) -> AbstractAsyncContextManager[None]:
        """Do what has to be done meanwhile, while the gateway runs."""
        ...

    async def identify(self, bearer: str | None, *, by_socket: bool) -> Identity | Denied:
        """Say who calls.

        Args:
            bearer: The token that they show; `None`: none, or a credential of another scheme.
            by_socket: Whether they came over the Unix socket, which only its owner can open.

        Raises:
            Unavailable: That cannot be told now.
        """
        ...


@asynccontextmanager
async def idle() -> AsyncGenerator[None]:
    """Do nothing meanwhile."""
    yield
