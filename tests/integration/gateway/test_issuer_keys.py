"""The issuer's keys over a real connection and from a real file; the provider away and back."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.integration.gateway.issuer import AUDIENCE, ISSUER, Issuer, serving_set
from tests.integration.gateway.served import Caller, Gateway, running_gateway
from tiny_harness.settings import AuthSettings, Settings
from tiny_harness_gateway.identity.keys import MAX_SET_BYTES, reader_of

pytestmark = pytest.mark.timeout(60)


@asynccontextmanager
async def gateway_with(folder: Path, **auth: Any) -> AsyncGenerator[Gateway]:
    given = {"mode": "jwt", "issuer": ISSUER, "audience": AUDIENCE, **auth}
    settings = Settings.model_validate({"store": {"sqlite_path": folder / "store.db"}, "auth": given})
    async with running_gateway(settings, folder) as gateway:
        yield gateway


async def status(gateway: Gateway, token: str) -> int:
    headers = {"Authorization": f"Bearer {token}", "A2A-Version": "1.0"}
    return (await Caller(gateway, "JSONRPC", headers).call("ListTasks")).status


async def test_a_provider_that_is_away_at_the_start_costs_503_and_no_more(tmp_path: Path) -> None:
    issuer = Issuer()
    issuer.is_away = True
    async with serving_set(issuer) as url, gateway_with(tmp_path, jwks_url=url, refetch_interval=0.01) as gateway:
        assert await status(gateway, issuer.sign()) == 503
        issuer.is_away = False
        async with asyncio.timeout(30):
            while await status(gateway, issuer.sign()) != 200:
                pass
        issuer.is_away = True
        assert await status(gateway, issuer.sign()) == 200


async def test_a_file_of_keys_is_read_anew_when_a_key_is_not_known(tmp_path: Path) -> None:
    issuer, file = Issuer(), tmp_path / "jwks.json"
    file.write_bytes(issuer.set)
    old = issuer.sign()
    async with gateway_with(tmp_path, jwks_file=file, refetch_interval=0.001) as gateway:
        assert await status(gateway, old) == 200
        issuer.rotate("k2")
        del issuer.keys["k1"]
        file.write_bytes(issuer.set)
        assert [await status(gateway, issuer.sign()), await status(gateway, old)] == [200, 401]


@pytest.mark.parametrize("answer", ["302 Found\r\nLocation: http://127.0.0.1:1/", "200 OK", "500 No"])
async def test_what_is_no_set_of_a_sane_size_at_the_address_itself_is_refused(answer: str) -> None:
    body = b"x" * (MAX_SET_BYTES + 1) if answer == "200 OK" else b""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(f"HTTP/1.1 {answer}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/jwks"
        given = {"mode": "jwt", "issuer": ISSUER, "audience": AUDIENCE, "jwks_url": url}
        with pytest.raises(ValueError, match="answered"):
            await reader_of(AuthSettings.model_validate(given))()
