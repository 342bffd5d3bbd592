"""Where notifications may go: to the open Internet, and to what an operator allows; checked by the address itself."""

import asyncio
from typing import Any

import pytest

from tiny_harness.push_address import Refused, find_place


def resolving(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> list[str]:
    """Let every name mean these addresses; the names that were looked up."""
    asked: list[str] = []

    async def getaddrinfo(host: str, port: int, **_: Any) -> list[Any]:
        asked.append(host)
        return [(0, 0, 0, "", (address, port)) for address in addresses]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", getaddrinfo, raising=False)
    return asked


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com/",
        "ftp://example.com/",
        "https://",
        "https:///path",
        "https://user@example.com/",
        "https://user:password@example.com/",
        "https://example.com:port/",
        "https://example.com:99999/",
        "https://exa mple.com/",
        "https://example.com/\r\nX: y",
        "https://example.com/#fragment",
        "https://exämple.com/",
        "https://[::1/",
        "//example.com",
        "example.com",
        "",
        "https://example.com/" + "a" * 3_000,
    ],
)
async def test_what_is_no_secure_address_is_refused(url: str) -> None:
    with pytest.raises(Refused):
        await find_place(url)


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.1",
        "0.0.0.0",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "192.0.0.192",
        "168.63.129.16",
        "224.0.0.1",
        "255.255.255.255",
        "2130706433",
        "0x7f000001",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::127.0.0.1]",
        "[::ffff:0:127.0.0.1]",
        "[64:ff9b:1::a00:1]",
        "[2001:0:a00:1::]",
        "[fec0::1]",
        "[5f00::1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "[fe80::1]",
        "[fc00::1]",
        "[ff02::1]",
        "localhost",
        "localhost.",
    ],
)
async def test_an_address_that_is_not_on_the_internet_is_refused_however_it_is_written(host: str) -> None:
    with pytest.raises(Refused):
        await find_place(f"https://{host}/")


async def test_one_bad_address_among_a_names_addresses_refuses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    resolving(monkeypatch, "93.184.216.34", "10.0.0.1")
    with pytest.raises(Refused, match="open Internet"):
        await find_place("https://example.com/")


async def test_a_name_on_the_internet_gives_the_address_to_connect_to(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = resolving(monkeypatch, "93.184.216.34")
    place = await find_place("https://Example.com./hook")
    assert (place.address, place.host, place.port) == ("93.184.216.34", "example.com", 443)
    assert asked == ["example.com"]


@pytest.mark.parametrize("address", ["2606:2800:220:1::1", "64:ff9b::5db8:d822", "2002:5db8:d822::1"])
async def test_an_address_of_ipv6_on_the_internet_is_allowed(address: str) -> None:
    assert (await find_place(f"https://[{address}]/")).address == address


@pytest.mark.parametrize("allowed", ["127.0.0.1", "127.0.0.1:8443"])
async def test_an_operator_can_allow_a_host_or_one_port_of_it(allowed: str) -> None:
    place = await find_place("http://127.0.0.1:8443/", [allowed])
    assert (place.address, place.port) == ("127.0.0.1", 8443)
    if ":" in allowed:
        with pytest.raises(Refused):
            await find_place("http://127.0.0.1:8444/", [allowed])
