"""One gateway per test, called on both bindings."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.integration.gateway.served import BINDINGS, Caller, Gateway, running_gateway
from tiny_harness.settings import Settings


@pytest.fixture
async def gateway(settings: Settings, tmp_path: Path) -> AsyncGenerator[Gateway]:
    async with running_gateway(settings, tmp_path) as gateway:
        yield gateway


@pytest.fixture(params=BINDINGS)
def binding(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def ann(gateway: Gateway, binding: str) -> Caller:
    """Ann, on each binding."""
    return gateway.caller(binding)
