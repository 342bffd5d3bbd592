"""Talking A2A to a server behind a Unix socket, and a harness to talk to."""

import re
import uuid
from pathlib import Path
from typing import Any

import httpx

from tests.e2e.process import children_of
from tiny_harness.settings import Settings

BURST = 200
SCRIPT = '[[rules]]\nreply = "re: {text}"\n'


def settings_for(home: Path) -> Settings:
    """Configure a harness whose home is there: scripted, and without a limit on how often one may ask."""
    script = home / "script.toml"
    script.write_text(SCRIPT)
    return Settings.model_validate(
        {
            "model": {"provider": "scripted"},
            "scripted": {"script": script},
            "store": {"sqlite_path": home / "store.db"},
            "server": {"bind": "127.0.0.1:0", "participant": "ann", "rate_limit_per_minute": 1_000_000},
        }
    )


def open_client(path: Path | None) -> httpx.AsyncClient:
    """Open a client of the server behind a Unix socket."""
    transport = httpx.AsyncHTTPTransport(uds=str(path), limits=httpx.Limits(max_connections=BURST + 10))
    return httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=120)


def message(text: str, task_id: str = "") -> dict[str, Any]:
    """Make a message."""
    return {"messageId": uuid.uuid4().hex, "role": "ROLE_USER", "parts": [{"text": text}], "taskId": task_id}


async def call(client: httpx.AsyncClient, method: str, **params: Any) -> dict[str, Any]:
    """Call a method that answers once."""
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return (await client.post("/rpc", json=body, headers={"A2A-Version": "1.0"})).json()["result"]


async def open_task(client: httpx.AsyncClient, text: str = "hi") -> dict[str, Any]:
    """Start a task, and wait until its first turn has ended."""
    return (await call(client, "SendMessage", message=message(text)))["task"]


def temporal_of(home: Path) -> tuple[int, int]:
    """Find the Temporal server of a home: its process and its port."""
    [pid] = children_of(home)
    found = re.search(r"--port\0(\d+)", Path(f"/proc/{pid}/cmdline").read_bytes().decode())
    assert found
    return pid, int(found[1])
