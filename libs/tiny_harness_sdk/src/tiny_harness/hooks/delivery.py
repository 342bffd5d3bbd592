"""What the two transports to a remote executor share: the call, the ways in which it fails, and the address rules.

A transport knows neither deadlines, nor retries, nor breakers: `remote` does.
"""

import ipaddress
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

from pydantic import SecretStr

from tiny_harness.hooks.signature import Secrets, secret_variable, sign

CONNECT_TIMEOUT_S: Final = 2.0
"""A host that takes longer is taken for dead: the rest of the deadline is for a retry."""
KEEP_ALIVE_S: Final = 3.0
"""Below the 5 s after which uvicorn and Node close an idle connection, or a call could fall into the closing one."""
MAX_PEER_CHARS: Final = 200
"""Of a peer's own words in a reason."""
MAX_ABORT_CHARS: Final = 300
"""Of a refusal."""
LOOPBACK: Final = ("all://localhost", "all://127.0.0.1", "all://[::1]")
"""What never goes through a proxy, whatever the environment says."""


class ServiceFault(Exception):
    """A service cannot be reached, or does not answer as the contract says. `reason` is for its operator."""

    def __init__(self, reason: str, *, is_unsent: bool = False, is_passing: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.is_unsent = is_unsent
        """Not a byte of the call left this process."""
        self.is_passing = is_passing
        """Calling again may help."""


class ExecutorFault(Exception):
    """A service says, as the contract wants it said, that its executor failed or cannot be called."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Delivery:
    """One attempt at calling an executor."""

    point: str
    context: Mapping[str, Any]
    delivery_id: str
    attempt: int = 1


@dataclass(frozen=True, slots=True)
class Offer:
    """What a service says that it has."""

    points: frozenset[str]
    commands: frozenset[str] | None = None
    """`None`: it cannot say."""


class Service(Protocol):
    """A service at one address, spoken to over one transport with one key."""

    async def call(self, delivery: Delivery) -> Mapping[str, Any] | None:
        """Call an executor; the patch that it answers, unchecked.

        Raises:
            HookAbort: It refuses.
            ExecutorFault: It failed.
            ServiceFault: No answer, or none that the contract allows.
        """
        ...

    async def offer(self) -> Offer:
        """Ask what it has.

        Raises:
            ServiceFault: No answer, or none that the contract allows.
            ExecutorFault: It refuses to say.
        """
        ...


class Signs(Protocol):
    """Signs requests."""

    def headers(self, method: str, path: str, body: bytes, delivery_id: str, attempt: int) -> dict[str, str]:
        """Sign a request; the headers to add to it."""
        ...


@dataclass(frozen=True, slots=True)
class Signer:
    """Signs requests with a key's first secret."""

    key_id: str
    secrets: Secrets

    def headers(self, method: str, path: str, body: bytes, delivery_id: str, attempt: int) -> dict[str, str]:
        """Sign a request; the headers to add to it.

        Raises:
            ServiceFault: There is no secret: nothing is ever sent unsigned.
        """
        secret = next(iter(self._secrets()), None)
        if secret is None:
            raise ServiceFault(f"there is no secret to sign with: set {secret_variable(self.key_id)}")
        return sign(
            secret,
            method=method,
            path=path,
            key_id=self.key_id,
            timestamp=int(time.time()),
            delivery_id=delivery_id,
            attempt=attempt,
            body=body,
        )

    def _secrets(self) -> tuple[SecretStr, ...]:
        return tuple(self.secrets(self.key_id))


def is_loopback(host: str) -> bool:
    """Whether a host is this machine itself."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def address_fault(url: str) -> str | None:
    """What is wrong with a service's URL, if anything: https is demanded, but on loopback."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return "is not a URL"
    if parts.scheme not in ("http", "https") or not host:
        return "is not an http or https URL"
    if parts.username is not None or parts.password is not None or parts.fragment:
        return "must hold neither credentials nor a fragment"
    if parts.scheme == "http" and not is_loopback(host):
        return "must be https: only a loopback host may be spoken to without"
    return None


def clean(words: str, limit: int = MAX_PEER_CHARS) -> str:
    """Make somebody's words fit for one line of a reason: printable, of bounded length."""
    printable = "".join(char if char.isprintable() else " " for char in words[: 4 * limit])
    return " ".join(printable.split())[:limit]
