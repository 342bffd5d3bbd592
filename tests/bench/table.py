"""The table of results: what was measured, against what, and what it should be."""

import os
import platform
import sys
from pathlib import Path

rows: list[tuple[str, str, str, str]] = []


def row(what: str, measured: str, baseline: str, goal: str) -> None:
    """Add a line to the table, and show it at once."""
    rows.append((what, measured, baseline, goal))
    print(f"  {what}: {measured} (baseline {baseline}; goal {goal})", file=sys.stderr, flush=True)


def show() -> None:
    """Print the machine and the table."""
    cpu = next((line for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line), "unknown CPU")
    print(f"\n{os.cpu_count()} cores, {cpu.partition(':')[2].strip()}, Python {platform.python_version()}\n")
    widths = [max(len(line[column]) for line in rows) for column in range(4)]
    for line in [("what", "measured", "baseline", "goal"), *rows]:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)))
