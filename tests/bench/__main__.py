"""Runs the benchmarks and prints one table: `python -m tests.bench [GROUP...]`, all groups by default."""

import os
import resource
import sys
import tempfile
from pathlib import Path

from temporalio.client import Client

from tests.bench.a2a import open_client, settings_for, temporal_of
from tests.bench.baseline import in_memory_app
from tests.bench.executors import measure_local, measure_remote
from tests.bench.hooked import measure_hooked
from tests.bench.programs import measure_programs
from tests.bench.slash import measure_slash
from tests.bench.streams import measure_streams
from tests.bench.table import row, show
from tests.bench.turns import measure_burst, measure_latency
from tiny_harness.local import running_harness
from tiny_harness.web_server import serving

GROUPS = ("turns", "slash", "hooks", "executors", "streams", "programs")


def resident_mb() -> float:
    """Resident memory of this process, in MB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1e6


async def main(home: Path, groups: frozenset[str]) -> None:
    """Run the chosen groups."""
    if groups & {"turns", "slash", "hooks"}:
        await on_a_harness(home, groups)
    if "executors" in groups:
        await measure_local()
        await measure_remote()
    if "streams" in groups:
        await measure_streams(home)
    if "programs" in groups:
        measure_programs()


async def on_a_harness(home: Path, groups: frozenset[str]) -> None:
    """Run what needs a harness, on one and the same."""
    settings = settings_for(home)
    app = in_memory_app(settings)
    app.state.stop_streams = lambda: None
    async with (
        running_harness(settings, home=home) as harness,
        serving(app, home / "base.sock", None),
        open_client(harness.address.socket) as ours,
        open_client(home / "base.sock") as theirs,
    ):
        row("resident memory after the start", f"{resident_mb():.0f} MB", "-", "<= 150 MB idle")
        server_pid, port = temporal_of(home)
        temporal = await Client.connect(f"127.0.0.1:{port}")
        if "slash" in groups:
            await measure_slash(ours, temporal)
        if "hooks" in groups:
            await measure_hooked(ours, home)
        if "turns" in groups:
            await measure_latency(ours, theirs)
            await measure_burst(ours, temporal, server_pid)
        row("resident memory at the end", f"{resident_mb():.0f} MB", "-", "-")


if __name__ == "__main__":
    import uvloop

    asked = frozenset(sys.argv[1:]) or frozenset(GROUPS)
    if unknown := asked - set(GROUPS):
        sys.exit(f"no such group: {', '.join(sorted(unknown))}; there are {', '.join(GROUPS)}")
    with tempfile.TemporaryDirectory() as folder:
        uvloop.run(main(Path(folder), asked))
    show()
    sys.stdout.flush()
    os._exit(0)
