"""A harness as its users run it: `tiny-harness serve` in a process of its own, on a loopback port that it picks."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

PATIENCE_S = 60
ROOT = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True)
class Served:
    """Where a harness is, and what lets one in."""

    url: str
    token: str
    pid: int
    home: Path

    @property
    def authorization(self) -> dict[str, str]:
        """The one header that a client needs."""
        return {"Authorization": f"Bearer {self.token}"}

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self.url.rpartition(":")[2])

    def signal(self, number: signal.Signals) -> None:
        """Send its process a signal."""
        os.kill(self.pid, number)


@asynccontextmanager
async def serving(
    home: Path,
    server: Mapping[str, Any],
    script: Path | None = None,
    plugins: Sequence[Path] = (),
    supervision: Mapping[str, Any] | None = None,
) -> AsyncGenerator[Served]:
    """Serve a home while the block runs.

    Args:
        home: A folder, made if it is not there; another life finds what the one before left.
        server: Keys of `[server]`.
        script: What the scripted model says; default: the demo's script.
        plugins: Folders of plugins.
        supervision: Keys of `[supervision]`.
    """
    sections = {"server": server, "supervision": supervision or {}}
    config, log = _furnish(home, sections, script, plugins)
    with log.open("wb") as errors:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tiny_harness", "--config", str(config), "serve"),
            cwd=ROOT,
            env={**os.environ, "HOME": str(home)},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
        )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(PATIENCE_S):
            said, _, url = (await process.stdout.readline()).decode().strip().partition(" ")
        assert said == "serving", log.read_text()[-2_000:]
        yield Served(url, (home / "token").read_text().strip(), process.pid, home)
    finally:
        await _stop(process)


def _furnish(
    home: Path, more: Mapping[str, Mapping[str, Any]], script: Path | None, plugins: Sequence[Path]
) -> tuple[Path, Path]:
    """Make the home with its configuration; that, and where standard error goes."""
    home.mkdir(mode=0o700, exist_ok=True)
    config = home / "config.toml"
    listed = json.dumps([str(plugin) for plugin in plugins])
    config.write_text(f"plugins = {listed}\n" + _config(home, more, script))
    return config, home / "stderr.log"


def _config(home: Path, more: Mapping[str, Mapping[str, Any]], script: Path | None) -> str:
    sections: dict[str, Mapping[str, Any]] = {
        "server": {"bind": "127.0.0.1:0", "participant": "ann", **more["server"]},
        "store": {"sqlite_path": str(home / "store.db")},
        "model": {"provider": "scripted"},
        "scripted": {"script": str(script)} if script else {},
        "supervision": more["supervision"],
    }
    # JSON's way to write text, numbers and lists is TOML's too.
    lines = [
        line
        for name, keys in sections.items()
        for line in (f"[{name}]", *(f"{key} = {json.dumps(value)}" for key, value in keys.items()))
    ]
    return "\n".join(lines) + "\n"


async def _stop(process: asyncio.subprocess.Process) -> None:
    """End it as systemd does: first politely."""
    if process.returncode is None:
        process.terminate()
    try:
        async with asyncio.timeout(PATIENCE_S):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()
        raise


def http_client(served: Served, participant: str = "ann") -> httpx.AsyncClient:
    """Open a plain HTTP client of a harness, who speaks A2A 1.0 as somebody."""
    headers = {**served.authorization, "A2A-Version": "1.0", "X-Participant-Id": participant}
    return httpx.AsyncClient(base_url=served.url, headers=headers, timeout=PATIENCE_S)
