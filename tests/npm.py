"""Packages of npm's that tests want, outside of the repository, installed once for each list of them."""

import hashlib
import os
import shutil
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

from tests.tools import go_without, require_tool

NODE_PATIENCE_S: Final = 60.0


def npm_folder(manifest: Path) -> Path:
    """Install what a `package.json` lists, unless that was done before; the folder with `node_modules`."""
    npm = require_tool("npm")
    digest = hashlib.sha256(manifest.read_bytes()).hexdigest()[:16]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tiny-harness-tests"
    made = cache / f"npm-{digest}"
    if made.exists():
        return made
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as folder:
        fresh = Path(folder, "made")
        fresh.mkdir()
        shutil.copy(manifest, fresh)
        done = run(npm, "install", "--no-audit", "--no-fund", "--prefix", str(fresh))
        if done.returncode:
            go_without(f"the packages of {manifest} could not be installed: {done.stderr[-500:]}")
        with suppress(OSError):  # another run was quicker, and made the same
            fresh.rename(made)
    return made


def run(*command: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, a minute at most."""
    environment = {**os.environ, **environ}
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=NODE_PATIENCE_S, check=False
    )
