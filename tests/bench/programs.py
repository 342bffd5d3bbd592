"""Programs that a person waits for: the command line, and the demo."""

import os
import statistics
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

from tests.bench.table import row


def measure_programs() -> None:
    """How long `--version`, `--help` and the demo's first reply take."""

    def took(*words: str) -> float:
        times: list[float] = []
        for _ in range(15):
            started = time.perf_counter()
            subprocess.run(words, check=True, capture_output=True, env=env)
            times.append(time.perf_counter() - started)
        return statistics.median(times)

    # As after an install: with compiled files.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    binary = str(Path(sysconfig.get_path("scripts")) / "tiny-harness")
    bare = took(sys.executable, "-c", "pass")
    for flag in ("--version", "--help"):
        mine = took(binary, flag)
        row(
            f"tiny-harness {flag}",
            f"{mine * 1e3:.0f} ms = {mine / bare:.1f} x",
            f"{bare * 1e3:.0f} ms python",
            "<= 3.5 x",
        )
    started = time.perf_counter()
    with subprocess.Popen([binary, "demo"], stdout=subprocess.PIPE, text=True, env=env) as demo:
        assert demo.stdout is not None
        for line in demo.stdout:
            if line.startswith("agent"):
                row("cold demo to its first reply", f"{time.perf_counter() - started:.1f} s", "-", "<= 3.5 s")
                break
        demo.stdout.read()
