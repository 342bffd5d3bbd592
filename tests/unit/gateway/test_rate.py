"""How often a participant may call, while what counts for all gateways is there and while it is away."""

import logging

import pytest
from limits.aio.storage import MemoryStorage
from limits.errors import StorageError

from tiny_harness_gateway.rate import AWAY_S, Rate


class Shaky(MemoryStorage):
    """Counts for all gateways, and can go away."""

    def __init__(self) -> None:
        super().__init__()
        self.is_away = False
        self.asked = 0

    async def acquire_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        self.asked += 1
        if self.is_away:
            raise StorageError(ConnectionError("no Redis"))
        return await super().acquire_entry(key, limit, expiry, amount)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


async def test_each_participant_has_calls_of_their_own() -> None:
    rate = Rate(2)
    assert [await rate.take("ann") for _ in range(2)] == [0, 0]
    assert 1 <= await rate.take("ann") <= 60
    assert await rate.take("bob") == 0


async def test_gateways_that_share_a_count_share_the_limit() -> None:
    shared = Shaky()
    one, two = Rate(2, shared), Rate(2, shared)
    assert [await one.take("ann"), await two.take("ann")] == [0, 0]
    assert min(await one.take("ann"), await two.take("ann")) >= 1


async def test_without_what_is_shared_each_gateway_counts_alone_and_says_so_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    shared, clock = Shaky(), Clock()
    rate = Rate(2, shared, clock=clock)
    shared.is_away = True
    assert [await rate.take("ann") for _ in range(2)] == [0, 0]
    assert await rate.take("ann") >= 1, "it limits all the same"
    assert shared.asked == 1, "and does not wait for it at each call"
    clock.now = AWAY_S
    assert await rate.take("ann") >= 1
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    shared.is_away, clock.now = False, 2 * AWAY_S
    assert await rate.take("ann") == 0, "counted where all count again"
    assert [record.levelno for record in caplog.records] == [logging.WARNING, logging.INFO]
