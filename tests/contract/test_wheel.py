"""The wheel holds all that an install needs."""

import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]

WANTED = (
    "tiny_harness/py.typed",
    "tiny_harness/tui/app.tcss",
    "tiny_harness/demo/plugin/plugin.json",
    "tiny_harness/demo/plugin/mcp.json",
    "tiny_harness/demo/plugin/skills/refunds/SKILL.md",
    "tiny_harness/demo/plugin/io.github.madarauchiha-314.tiny-harness/hooks.json",
    "tiny_harness/demo/plugin/io.github.madarauchiha-314.tiny-harness/hooks.py",
    "tiny_harness/demo/plugin/io.github.madarauchiha-314.tiny-harness/systemprompt.md",
    "tiny_harness/store/migrations/env.py",
    "tiny_harness/store/migrations/versions/0001_first.py",
    "tiny_harness_gateway/py.typed",
    "tiny_harness_engine/py.typed",
    "tiny_harness_engine/models/demo.toml",
    "tiny_harness_hooks/py.typed",
)


def test_the_wheel_holds_all_four_packages_and_their_files(tmp_path: Path) -> None:
    # Built without isolation: the build tools are installed, and tests reach no network.
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    [wheel] = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert [name for name in WANTED if name not in names] == []
    assert [name for name in names if name.startswith("tests/")] == []
