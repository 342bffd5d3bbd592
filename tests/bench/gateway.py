"""A gateway alone in a process of its own: `python -m tests.bench.gateway HOME redis|polling`, prints its port.

It follows Redis as in a deployment, or does what similar systems do: each stream asks for news four times a second.
"""

import asyncio
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tiny_harness.bus import open_bus
from tiny_harness.events import Event
from tiny_harness.settings import Settings
from tiny_harness.store import Store, open_store
from tiny_harness.web_server import bind_tcp, serving
from tiny_harness_gateway import app as gateway

TOKEN = "a-token-of-the-bench"
POLL_INTERVAL_S = 0.25


def settings_of(home: Path, port: int = 0) -> Settings:
    """Configure a gateway for many streams of one participant."""
    server = {"bind": f"127.0.0.1:{port}", "max_streams": 10_000, "rate_limit_per_minute": 1_000_000}
    return Settings.model_validate({"store": {"sqlite_path": home / "store.db"}, "server": server})


class PollingSubscriptions:
    """Asks the store for each stream by itself."""

    def __init__(self, store: Store, *_: Any, **__: Any) -> None:
        self._store = store

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        yield

    def close_feeds(self) -> None:
        return None

    @asynccontextmanager
    async def follow(self, task_id: str, after: int, **_: bool) -> AsyncGenerator[Any]:
        yield _PollingFeed(self._store, task_id, after)


class _PollingFeed:
    def __init__(self, store: Store, task_id: str, after: int) -> None:
        self._store = store
        self._task_id = task_id
        self._cursor = after

    async def items(self) -> AsyncGenerator[Event]:
        while True:
            for event in await self._store.events(self._task_id, self._cursor, 200):
                self._cursor = event.seq
                yield event
            await asyncio.sleep(POLL_INTERVAL_S)


async def main(home: Path, way: str) -> None:
    """Serve until killed."""
    if way == "polling":
        gateway.Subscriptions = PollingSubscriptions
    tcp = bind_tcp("127.0.0.1", 0)
    port = tcp.getsockname()[1]
    settings = settings_of(home, port)
    async with open_store(settings) as store, open_bus(settings) as bus:
        nobody: Any = object()  # only streams are asked for
        app = gateway.create_app(settings, store=store, bus=bus, token=TOKEN, engine=nobody)
        async with serving(app, home / f"{way}.sock", tcp):
            print(port, flush=True)
            await asyncio.Event().wait()


if __name__ == "__main__":
    import uvloop

    uvloop.run(main(Path(sys.argv[1]), sys.argv[2]))
