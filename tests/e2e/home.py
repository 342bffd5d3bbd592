"""A home that harnesses with plugins live in, one after the other: `tiny-harness serve` as a process, to be killed."""

import asyncio
import json
import os
import signal
import sqlite3
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.e2e.process import until_gone
from tests.served import ROOT, Served

PATIENCE_S: Final = 60
KEYS: Final = {
    "TINY_HARNESS_HOOK_SECRET_DEPLOYS": "a secret of thirty-two characters, at least",
    "TINY_HARNESS_HOOK_SECRET_ELSEWHERE": "another secret of thirty-two characters",
}
"""What harnesses and services here share. Other variables of the kind stay with whoever runs the tests."""

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Life(Served):
    """One life of a harness."""

    process: asyncio.subprocess.Process

    async def kill(self) -> None:
        """`kill -9`, until nothing of it is left."""
        self.process.send_signal(signal.SIGKILL)
        async with asyncio.timeout(PATIENCE_S):
            await self.process.wait()
        await until_gone(self.home)


@dataclass
class Home:
    """A folder, and how the harness in it is configured."""

    path: Path
    script: Path
    hooks: Mapping[str, float] = field(default_factory=dict[str, float])
    """Keys of `[hooks]`."""

    @property
    def config(self) -> Path:
        """The configuration's file."""
        return self.path / "config.toml"

    @property
    def log(self) -> str:
        """What all lives have written to standard error."""
        return (self.path / "stderr.log").read_text()

    @asynccontextmanager
    async def serving(self, *plugins: Path) -> AsyncGenerator[Life]:
        """Serve with these plugins while the block runs, or until the harness is killed in it."""
        self.path.mkdir(mode=0o700, exist_ok=True)
        self.config.write_text(self._toml(plugins))
        with (self.path / "stderr.log").open("ab") as errors:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "tiny_harness", "--config", str(self.config), "serve"),
                cwd=ROOT,
                env={**os.environ, **KEYS, "HOME": str(self.path)},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
            )
        assert process.stdout is not None
        try:
            async with asyncio.timeout(PATIENCE_S):
                said, _, url = (await process.stdout.readline()).decode().strip().partition(" ")
            assert said == "serving", self.log[-2_000:]
            yield Life(url, (self.path / "token").read_text().strip(), process.pid, self.path, process)
        finally:
            await end(process)

    def snapshot(self, task_id: str) -> Json:
        """Read how a task stands in the store, but for the number of its last event."""
        [text] = self._read("select snapshot from tasks where task_id = ?", task_id)
        snapshot: Json = json.loads(text)
        del snapshot["head"]
        return snapshot

    def task_ids(self) -> set[str]:
        """List all tasks in the store."""
        return set(self._read("select task_id from tasks"))

    def _read(self, query: str, *values: str) -> list[str]:
        connection = sqlite3.connect(f"file:{self.path / 'store.db'}?mode=ro", uri=True)
        try:
            return [value for (value,) in connection.execute(query, values)]
        finally:
            connection.close()

    def _toml(self, plugins: tuple[Path, ...]) -> str:
        sections: dict[str, Mapping[str, Any]] = {
            "server": {"bind": "127.0.0.1:0", "participant": "ann", "rate_limit_per_minute": 100_000},
            "store": {"sqlite_path": str(self.path / "store.db")},
            "model": {"provider": "scripted"},
            "scripted": {"script": str(self.script), "models": ["scripted", "big"]},
            "hooks": {"probe_interval": 0.5, **self.hooks},
        }
        # JSON's way to write text, numbers and lists is TOML's too.
        lines = [f"plugins = {json.dumps([str(plugin) for plugin in plugins])}"]
        for name, keys in sections.items():
            lines += [f"[{name}]", *(f"{key} = {json.dumps(value)}" for key, value in keys.items())]
        return "\n".join(lines) + "\n"


async def end(process: asyncio.subprocess.Process) -> None:
    """End a process as systemd does: first politely."""
    if process.returncode is None:
        process.terminate()
    try:
        async with asyncio.timeout(PATIENCE_S):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()
        raise
