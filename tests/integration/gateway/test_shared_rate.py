"""The rate over two gateways on a real Redis, which goes away and comes back."""

import logging
from pathlib import Path

import httpx
import pytest

from tests.integration.gateway.served import Gateway, running_gateway, words
from tests.valkey import running_redis, running_valkey
from tiny_harness.settings import Settings

pytestmark = pytest.mark.timeout(120)

RATE = 6


def settings_in(folder: Path, url: str) -> Settings:
    folder.mkdir()
    redis = {"url": url, "timeout": 1.0}
    return Settings.model_validate({"store": {"sqlite_path": folder / "store.db"}, "redis": redis})


async def call(gateway: Gateway, name: str = "ann") -> httpx.Response:
    headers = gateway.caller("HTTP+JSON", name).headers
    return await gateway.http.get(f"{gateway.url}/rest/tasks", headers=headers)


async def test_two_gateways_count_together(tmp_path: Path) -> None:
    async with running_redis(tmp_path) as url:
        one_settings, two_settings = [settings_in(tmp_path / name, url) for name in "ab"]
        async with (
            running_gateway(one_settings, tmp_path / "a", rate_limit_per_minute=RATE) as one,
            running_gateway(two_settings, tmp_path / "b", rate_limit_per_minute=RATE) as two,
        ):
            told = [await call(gateway) for _ in range(RATE) for gateway in (one, two)]
            assert [answer.status_code for answer in told] == [200] * RATE + [429] * RATE
            assert all(1 <= int(answer.headers["retry-after"]) <= 60 for answer in told[RATE:])
            assert (await call(one, "bob")).status_code == 200
            refused = await one.caller().call("SendMessage", {"message": words("hello", "m")})
            assert (refused.status, one.engine.deliveries) == (429, [])


async def test_a_gateway_counts_alone_while_redis_is_gone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with running_valkey(tmp_path) as redis:
        settings = settings_in(tmp_path / "a", redis.url)
        async with running_gateway(settings, tmp_path / "a", rate_limit_per_minute=RATE) as gateway:
            assert (await call(gateway)).status_code == 200
            await redis.kill()
            statuses = [(await call(gateway)).status_code for _ in range(RATE + 2)]
            assert statuses == [200] * RATE + [429] * 2
    told = [record for record in caplog.records if record.name == "tiny_harness_gateway.rate"]
    assert [record.levelno for record in told] == [logging.WARNING]
