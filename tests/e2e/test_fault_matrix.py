"""The fault matrix: everything that a deployment consists of dies under load, and nobody who uses it is the worse."""

import os
import random
from pathlib import Path
from typing import Final

import pytest

from tests.cluster.cluster import running_cluster
from tests.cluster.faults import RECOVERY_S, Faults
from tests.cluster.load import HEAL_S, Load, loading
from tiny_harness.client import HarnessClient, connect

IS_SOAK: Final = bool(os.environ.get("TINY_HARNESS_SOAK"))
DURATION_S: Final = 600 if IS_SOAK else 60
LONGEST_S: Final = 25.0 if IS_SOAK else 4.0
TALKERS: Final = 6


@pytest.mark.timeout(DURATION_S + 600)
async def test_whatever_is_killed_under_load_nothing_is_lost_or_done_twice(tmp_path: Path) -> None:
    seed = random.randrange(2**32)
    print(f"\nseed {seed}")
    async with (
        running_cluster(tmp_path) as cluster,
        loading(cluster, TALKERS, seed) as load,
        connect(await cluster.address("canary"), heal_s=HEAL_S) as canary,
    ):
        faults = Faults(cluster, random.Random(seed), lambda: prove(canary), LONGEST_S)
        await load.during(faults.run(DURATION_S))
        print(faults.table())
        print(f"{len(faults.done)} faults; {load}")
        await load.check()
        check_pace(load, faults)


async def prove(client: HarnessClient) -> None:
    assert (await client.send("hello")).reply == "1: hello"


def check_pace(load: Load, faults: Faults) -> None:
    """No answer took longer than it may once everything was back."""
    for said in load.said.values():
        well = max((at for at in faults.recovered_at if at < said.answered_at), default=0.0)
        assert said.answered_at - max(well, said.sent_at) < RECOVERY_S, said.text
