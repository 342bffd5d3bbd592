"""Certificates are checked: nothing is sent to a service that cannot show a good one."""

import asyncio
import datetime
import ipaddress
import ssl
from pathlib import Path

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.integration.remote_hooks.contexts import SECRET, command, declared, remote, request, secrets
from tiny_harness.errors import ConfigError, HookTransportError
from tiny_harness.executors import Certificate, ExecutorApp, serving_executors
from tiny_harness.executors.server import DRAIN_TIMEOUT_S
from tiny_harness.hooks.declaration import Transport
from tiny_harness.hooks.remote import RemoteExecutors
from tiny_harness.hooks.trust import trust_of


def make_certificate(folder: Path) -> Path:
    """Make a certificate for loopback that nobody vouches for, with its key, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    path = folder / "certificate.pem"
    plain = serialization.NoEncryption()
    pem = serialization.Encoding.PEM
    path.write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain) + certificate.public_bytes(pem))
    return path


@pytest.mark.parametrize("transport", ["jsonrpc", "mcp"])
async def test_a_certificate_that_nobody_vouches_for_is_refused(transport: str, tmp_path: Path):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(make_certificate(tmp_path))
    heard: list[bytes] = []

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.read(1))
        writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=context)
    url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/hooks"
    try:
        async with remote(url, transport=transport) as executor:
            with pytest.raises(HookTransportError) as failed:
                await executor.call(request())
    finally:
        server.close()
    assert "certificate" in failed.value.reason.lower()
    assert heard in ([], [b""])


@pytest.mark.parametrize(("transport", "path"), [("jsonrpc", "rpc"), ("mcp", "mcp")])
async def test_a_host_of_executors_speaks_tls_to_an_engine_that_trusts_its_authority(
    transport: Transport, path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TINY_HARNESS_HOOK_SECRET_TEST", SECRET.get_secret_value())
    app = ExecutorApp("test")
    app.command("deploy")(lambda context: f"Deployed to {context.arguments}.")
    shown = make_certificate(tmp_path)
    async with serving_executors(app, "127.0.0.1:0", certificate=Certificate(shown, shown)) as rpc:
        url = rpc.removesuffix("rpc") + path
        async with RemoteExecutors(secrets=secrets, trust=trust_of(shown)) as remotes:
            executor = remotes.executor(declared(url, "command.invoked.in", command="deploy", transport=transport))
            patch = await executor.call(command("staging"))
    assert rpc.startswith("https://")
    assert patch is not None
    assert patch["result"]["reply"] == "Deployed to staging."


async def test_a_caller_who_keeps_a_connection_does_not_hold_up_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TINY_HARNESS_HOOK_SECRET_TEST", SECRET.get_secret_value())
    app = ExecutorApp("test")
    app.command("deploy")(lambda context: "done")
    shown = make_certificate(tmp_path)
    clock = asyncio.get_running_loop().time
    async with httpx.AsyncClient(verify=trust_of(shown) or True, timeout=60) as http:
        async with serving_executors(app, "127.0.0.1:0", certificate=Certificate(shown, shown)) as url:
            assert (await http.get(url.removesuffix("rpc") + "healthz")).status_code == 200
            asked_to_stop = clock()
        assert clock() - asked_to_stop < DRAIN_TIMEOUT_S - 2


@pytest.mark.parametrize("content", [None, "no certificate"])
async def test_files_without_a_certificate_end_the_start(
    content: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TINY_HARNESS_HOOK_SECRET_TEST", SECRET.get_secret_value())
    file = tmp_path / "certificate.pem"
    if content is not None:
        file.write_text(content)
    with pytest.raises(ConfigError, match=r"certificate\.pem"):
        trust_of(file)
    with pytest.raises(ConfigError, match=r"certificate\.pem"):
        async with serving_executors(ExecutorApp("test"), "127.0.0.1:0", certificate=Certificate(file, file)):
            pass


def test_a_certificate_without_its_key_is_refused() -> None:
    assert Certificate.given(None, None) is None
    with pytest.raises(ConfigError, match="--tls-key"):
        Certificate.given("certificate.pem", None)
