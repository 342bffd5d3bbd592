"""Where a notification may be sent: nowhere that only this machine or its network can reach (DESIGN: events).

Checked when an address is stored, for its maker to know, and again when it is connected to, with the very address that
the connection then uses: a name may mean another machine by then.
"""

import asyncio
import socket
from collections.abc import Collection
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Final
from urllib.parse import urlsplit

MAX_URL_CHARS: Final = 2_048
RESOLVE_TIMEOUT_S: Final = 5.0
_RESERVED: Final = frozenset(ip_address(address) for address in ("192.0.0.192", "168.63.129.16"))
"""Global by their numbers, but where clouds answer for a machine."""
_NAT64: Final = IPv6Network("64:ff9b::/96")
_UNICAST: Final = IPv6Network("2000::/3")
"""All of IPv6 that is handed out. What `is_global` lets through besides may lead inwards: `::7f00:1`, `64:ff9b:1::/48`,
`fec0::/10`."""
_LOW_32: Final = 0xFFFF_FFFF


class Refused(Exception):
    """An address that may not be told anything; its words are for its maker."""


@dataclass(frozen=True, slots=True)
class Place:
    """A checked address: what to connect to, and what to call it."""

    address: str
    """A numeric address."""
    host: str
    """Its name in the URL, which its certificate has to have."""
    port: int


async def find_place(url: str, allow_hosts: Collection[str] = ()) -> Place:
    """Find where a URL leads now.

    Args:
        url: Of a receiver.
        allow_hosts: Hosts that an operator allows whatever their address, and over plain http: `name` or `name:port`.

    Raises:
        Refused: It leads nowhere, or where it may not lead.
    """
    host, port, is_secure = _read(url)
    is_allowed = bool({host, f"{host}:{port}"} & set(allow_hosts))
    if not is_secure and not is_allowed:
        raise Refused("must be https")
    found = await _resolve(host, port)
    if not is_allowed:
        for address in found:
            _check(address)
    return Place(str(found[0]), host, port)


def _read(url: str) -> tuple[str, int, bool]:
    if len(url) > MAX_URL_CHARS or not url.isascii() or not url.isprintable() or " " in url:
        raise Refused("is no address of a web server")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise Refused("is no address of a web server") from None
    if parts.scheme not in ("http", "https") or not host or parts.username is not None or parts.password is not None:
        raise Refused("must be https, with a host and no user")
    if parts.fragment:
        raise Refused("must not have a fragment")
    is_secure = parts.scheme == "https"
    return host.rstrip("."), port or (443 if is_secure else 80), is_secure


async def _resolve(host: str, port: int) -> list[IPv4Address | IPv6Address]:
    try:
        async with asyncio.timeout(RESOLVE_TIMEOUT_S):
            found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError, TimeoutError):
        raise Refused(f"{host} cannot be found") from None
    return [ip_address(str(entry[4][0]).partition("%")[0]) for entry in found]


def _check(address: IPv4Address | IPv6Address) -> None:
    """Refuse what is not the open Internet, also within an address of IPv6.

    Raises:
        Refused: It is not.
    """
    inner = _inner(address)
    for found in (address,) if inner is None else (address, inner):
        if not _is_open(found):
            raise Refused("leads to an address that is not on the open Internet")


def _is_open(address: IPv4Address | IPv6Address) -> bool:
    if isinstance(address, IPv6Address) and address not in _UNICAST and address not in _NAT64:
        return False
    return address.is_global and not address.is_multicast and address not in _RESERVED


def _inner(address: IPv4Address | IPv6Address) -> IPv4Address | None:
    """Find the address of IPv4 that one of IPv6 leads to."""
    if isinstance(address, IPv4Address):
        return None
    if address in _NAT64:
        return IPv4Address(int(address) & _LOW_32)
    teredo = address.teredo
    return address.ipv4_mapped or address.sixtofour or (teredo[1] if teredo else None)
