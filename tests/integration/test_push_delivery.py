"""One delivery against hostile receivers: to the address that was checked, for a bounded time, to whom may be told."""

import asyncio
import datetime
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.integration.test_store_pushes import KEY, write
from tiny_harness.push import VARIABLE, PushSecret, push_ring
from tiny_harness.seal import SealRing, make_key
from tiny_harness.settings import PushSettings, Settings
from tiny_harness.store import Store, open_store
from tiny_harness_engine.activities import deliver
from tiny_harness_engine.activities.deliver import DeliverActivity, push_client
from tiny_harness_engine.push_calls import Delivered

NAME = "receiver.example"
TAKEN = b"HTTP/1.1 204 No Content\r\n\r\n"
Respond = Callable[[asyncio.StreamWriter], Awaitable[None]]


@pytest.fixture
def ring() -> SealRing:
    ring = push_ring({VARIABLE: make_key()})
    assert ring is not None
    return ring


@pytest.fixture
async def store(either: Settings, ring: SealRing) -> AsyncGenerator[Store]:
    """A store with a task of Ann's, who was not told of its events 2 and 3."""
    async with open_store(either) as store:
        for head in range(3):
            await write(store, f"m:{head}", head, participants=("ann",))
        yield store


class Listener:
    """A raw server on loopback: what it was sent, and how it answers."""

    def __init__(self, respond: Respond) -> None:
        self.heads: list[bytes] = []
        self._respond = respond

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            self.heads.append(await reader.readuntil(b"\r\n\r\n"))
            await self._respond(writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


async def take(writer: asyncio.StreamWriter) -> None:
    writer.write(TAKEN)
    await writer.drain()


@asynccontextmanager
async def listening(
    respond: Respond = take, trust: ssl.SSLContext | None = None
) -> AsyncGenerator[tuple[Listener, int]]:
    listener = Listener(respond)
    server = await asyncio.start_server(listener.connected, "127.0.0.1", 0, ssl=trust)
    async with server:
        yield listener, server.sockets[0].getsockname()[1]


def resolving(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> list[str]:
    """Let names mean one address after the other, the last one for ever; the names that were looked up."""
    asked: list[str] = []

    async def getaddrinfo(host: str, port: int, **_: Any) -> list[Any]:
        asked.append(host)
        return [(2, 1, 6, "", (addresses[min(len(asked), len(addresses)) - 1], port))]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", getaddrinfo, raising=False)
    return asked


async def delivered(
    store: Store, ring: SealRing, url: str, allowed: tuple[str, ...] = (), http: httpx.AsyncClient | None = None
) -> Delivered:
    """Deliver what there is to one receiver, once."""
    assert await store.save_push(KEY, url, PushSecret(token="t").seal(ring, KEY), 1, 1)
    settings = Settings.model_validate({"push": PushSettings(allow_hosts=allowed), "model": {"provider": "scripted"}})
    async with asyncio.timeout(60), push_client() as ours:
        return await DeliverActivity(settings, store, ring, http or ours).deliver(KEY)


async def reached(store: Store) -> tuple[int, int]:
    """The last event that the receiver took, and the failures since."""
    kept = await store.push(KEY)
    assert kept is not None
    return kept.delivered_seq, kept.failures


async def test_the_address_that_was_checked_is_the_one_that_is_connected_to(
    store: Store, ring: SealRing, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with listening() as (listener, port):
        asked = resolving(monkeypatch, "127.0.0.1")
        await delivered(store, ring, f"http://{NAME}:{port}/hook", (NAME,))
    assert await reached(store) == (3, 0)
    assert asked == [NAME, NAME], "once for each event: nobody looks the name up again to connect"
    assert all(f"\r\nHost: {NAME}:{port}\r\n".encode() in head for head in listener.heads)


async def test_a_name_that_leads_inwards_by_now_is_not_connected_to(
    store: Store, ring: SealRing, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with listening() as (listener, port):
        resolving(monkeypatch, "127.0.0.1")
        done = await delivered(store, ring, f"https://{NAME}:{port}/hook")
    assert done.pause_s > 0
    assert await reached(store) == (1, 1)
    assert listener.heads == []


@pytest.mark.parametrize(("certified", "expected"), [(NAME, (3, 0)), ("other.example", (1, 1))])
async def test_the_certificate_has_to_be_the_names_though_the_address_is_connected_to(
    store: Store,
    ring: SealRing,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    certified: str,
    expected: tuple[int, int],
) -> None:
    certificate = make_certificate(tmp_path, certified)
    shown = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    shown.load_cert_chain(certificate)
    trusted = ssl.create_default_context(cafile=certificate)
    async with listening(trust=shown) as (listener, port), httpx.AsyncClient(verify=trusted, trust_env=False) as http:
        resolving(monkeypatch, "127.0.0.1")
        await delivered(store, ring, f"https://{NAME}:{port}/hook", (NAME,), http)
    assert await reached(store) == expected
    assert len(listener.heads) == expected[0] - 1


async def test_an_endless_answer_is_not_read(store: Store, ring: SealRing) -> None:
    async def endless(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n")
        while True:
            writer.write(b"x" * 65_536)
            await writer.drain()

    async with listening(endless) as (_, port):
        await delivered(store, ring, f"http://127.0.0.1:{port}/", ("127.0.0.1",))
    assert await reached(store) == (3, 0)


async def test_an_answer_that_comes_drop_by_drop_is_given_up(
    store: Store, ring: SealRing, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def dripping(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n")
        while True:  # no read of the client ever waits for long
            writer.write(b"X-A: b\r\n")
            await writer.drain()
            await asyncio.sleep(0.05)

    async with listening(dripping) as (_, port):
        monkeypatch.setattr(deliver, "TIMEOUT_S", 0.5)
        done = await delivered(store, ring, f"http://127.0.0.1:{port}/", ("127.0.0.1",))
    assert done.pause_s > 0
    assert await reached(store) == (1, 1)


async def test_a_slow_receiver_ends_an_activity_between_two_events(
    store: Store, ring: SealRing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deliver, "PAGE_S", -1.0)
    async with listening() as (_, port):
        done = await delivered(store, ring, f"http://127.0.0.1:{port}/", ("127.0.0.1",))
    assert done == Delivered(has_more=True)
    assert await reached(store) == (2, 0)


async def test_who_has_no_role_any_more_is_told_nothing_and_forgotten(store: Store, ring: SealRing) -> None:
    await write(store, "m:left", 3)
    async with listening() as (listener, port):
        done = await delivered(store, ring, f"http://127.0.0.1:{port}/", ("127.0.0.1",))
    assert done == Delivered(is_over=True)
    assert await store.push(KEY) is None
    assert listener.heads == []


def make_certificate(folder: Path, name: str) -> Path:
    """Make a certificate for a name that vouches for itself, with its key, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    path = folder / "certificate.pem"
    plain, pem = serialization.NoEncryption(), serialization.Encoding.PEM
    path.write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain) + certificate.public_bytes(pem))
    return path
