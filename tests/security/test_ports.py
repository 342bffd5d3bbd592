"""Every port that a harness's processes listen on: loopback, and closed to web pages from elsewhere (R5.5-5.7)."""

import asyncio
from collections.abc import AsyncGenerator, Iterator, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from socket import htonl
from typing import Final

import httpx
import pytest

from tests.served import Served, serving

LISTENING: Final = "0A"
EVIL: Final = "evil.example"
PROBE_TIMEOUT_S: Final = 5.0

PATHS: Final = (
    "/",
    "/.well-known/agent-card.json",
    "/healthz",
    "/readyz",
    "/rpc",
    "/rest/message:send",
    "/rest/message:stream",
    "/rest/tasks",
    "/metrics",
    # Temporal's own HTTP API: it starts and ends workflows.
    "/api/v1/namespaces",
    "/api/v1/namespaces/default/workflows",
    "/api/v1/namespaces/default/workflows/evil",
    "/api/v1/system-info",
    "/namespaces/default/workflows",
)

BODIES: Final = (
    b'{"jsonrpc":"2.0","id":1,"method":"ListTasks","params":{}}',
    b'{"message":{"messageId":"evil","role":"ROLE_USER","parts":[{"text":"evil"}]}}',
    b'{"workflowType":{"name":"TaskWorkflow"},"taskQueue":{"name":"tiny-harness"},"workflowId":"evil"}',
)


@dataclass(frozen=True, slots=True)
class Port:
    """Where one process of the tree listens."""

    address: IPv4Address | IPv6Address
    number: int
    program: str


@pytest.fixture(scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Served]:
    """A harness of its own, with everything that one listens on."""
    async with serving(tmp_path_factory.mktemp("ports") / "home", {"rate_limit_per_minute": 100_000}) as served:
        yield served


def tree(pid: int) -> Iterator[int]:
    """A process and all that descend from it."""
    yield pid
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in children.read_text().split():
            yield from tree(int(child))


def link_of(file: Path) -> str:
    """What a descriptor is; empty if it was closed meanwhile."""
    try:
        return file.readlink().name
    except FileNotFoundError:
        return ""


def ports_of(pid: int) -> set[Port]:
    """The TCP ports that a process tree listens on."""
    found: set[Port] = set()
    for process in tree(pid):
        links = {name for link in Path(f"/proc/{process}/fd").iterdir() if (name := link_of(link))}
        program = Path(f"/proc/{process}/comm").read_text().strip()
        for table in ("tcp", "tcp6"):
            for line in Path(f"/proc/{process}/net/{table}").read_text().splitlines()[1:]:
                _, local, _, state, *_ = fields = line.split()
                if state == LISTENING and f"socket:[{fields[9]}]" in links:
                    address, _, number = local.partition(":")
                    found.add(Port(read_address(address), int(number, 16), program))
    return found


def read_address(text: str) -> IPv4Address | IPv6Address:
    """Read an address as /proc writes it: words of four bytes in the machine's order."""
    words = [int(text[start : start + 8], 16) for start in range(0, len(text), 8)]
    return ip_address(b"".join(htonl(word).to_bytes(4, "big") for word in words))


@pytest.fixture(scope="module")
async def http() -> AsyncGenerator[httpx.AsyncClient]:
    """A client that is nobody's."""
    async with httpx.AsyncClient(timeout=PROBE_TIMEOUT_S) as client:
        yield client


async def probe(
    http: httpx.AsyncClient, served: Served, method: str, headers: Mapping[str, str], body: bytes = b""
) -> dict[tuple[Port, str], int | None]:
    """Ask all ports something over HTTP/1, on all paths; the statuses, `None` from a port that does not speak it."""
    answered: dict[tuple[Port, str], int | None] = {}
    for port in ports_of(served.pid):
        for path in PATHS:
            try:
                url = f"http://127.0.0.1:{port.number}{path}"
                answered[port, path] = (await http.request(method, url, headers=headers, content=body)).status_code
            except (httpx.RemoteProtocolError, httpx.ReadError, httpx.ReadTimeout):
                answered[port, path] = None
    return answered


def check(served: Served, answered: Mapping[tuple[Port, str], int | None]) -> None:
    """Check that all were refused, by us with 403."""
    assert {where for where, status in answered.items() if status is not None and status < 400} == set()
    assert {status for (port, _), status in answered.items() if port.number == served.port} == {403}


async def test_all_ports_are_on_loopback(served: Served) -> None:
    ports = ports_of(served.pid)
    assert served.port in {port.number for port in ports}
    assert any("temporal" in port.program for port in ports), "the Temporal server was not seen"
    assert [port for port in ports if not port.address.is_loopback] == []


async def test_no_port_answers_to_a_foreign_host(served: Served, http: httpx.AsyncClient) -> None:
    for known in ({}, served.authorization):
        check(served, await probe(http, served, "GET", {"Host": EVIL, **known}))


@pytest.mark.parametrize("origin", [f"http://{EVIL}", "null"])
async def test_no_port_takes_a_post_from_a_page_of_another_site(
    served: Served, http: httpx.AsyncClient, origin: str
) -> None:
    page = {"Origin": origin, "Content-Type": "text/plain", "Sec-Fetch-Site": "cross-site"}
    for body in BODIES:
        check(served, await probe(http, served, "POST", page, body))


async def test_our_own_clients_are_answered(served: Served) -> None:
    """Else the others would pass because nobody is there."""
    headers = {**served.authorization, "A2A-Version": "1.0"}
    async with httpx.AsyncClient(base_url=served.url, headers=headers) as http, asyncio.timeout(PROBE_TIMEOUT_S):
        assert (await http.get("/rest/tasks")).status_code == 200
        assert (await http.get("/.well-known/agent-card.json")).status_code == 200
