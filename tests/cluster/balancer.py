"""A small balancer: connections go round, to backends that are ready as long as one is, else to any that accepts."""

import asyncio
import itertools
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final

import httpx

CHECK_INTERVAL_S: Final = 0.25
CHECK_TIMEOUT_S: Final = 3.0
CHUNK: Final = 65_536


class Balancer:
    """Balances TCP connections over ports of this machine."""

    def __init__(self, ports: Sequence[int]) -> None:
        self._ready = dict.fromkeys(ports, False)
        self._turns = itertools.count()
        self._carrying: set[asyncio.Task[None]] = set()
        self._is_over = False
        self.taken = dict.fromkeys(ports, 0)
        """Connections that each backend was given."""

    @asynccontextmanager
    async def running(self, port: int) -> AsyncGenerator[None]:
        """Listen on a port of loopback while the block runs."""
        server = await asyncio.start_server(self._accept, "127.0.0.1", port)
        checks = [asyncio.create_task(self._check(backend)) for backend in self._ready]
        try:
            yield
        finally:
            self._is_over = True
            server.close()
            tasks = [*checks, *self._carrying]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _check(self, port: int) -> None:
        """Ask a backend again and again whether it is ready."""
        async with httpx.AsyncClient(timeout=CHECK_TIMEOUT_S) as http:
            while True:
                try:
                    self._ready[port] = (await http.get(f"http://127.0.0.1:{port}/readyz")).status_code == 200
                except httpx.HTTPError:
                    self._ready[port] = False
                await asyncio.sleep(CHECK_INTERVAL_S)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_over:
            writer.close()
            return
        task = asyncio.create_task(self._carry(reader, writer))
        self._carrying.add(task)
        task.add_done_callback(self._carrying.discard)
        task.add_done_callback(lambda _: writer.close())  # also of a task that was cancelled before it began

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry one connection until one side ends it."""
        backend = await self._connect()
        if backend is not None:
            await _join(reader, writer, *backend)

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        for port in self._order():
            try:
                found = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                self._ready[port] = False
            else:
                self.taken[port] += 1
                return found
        return None

    def _order(self) -> list[int]:
        """List all backends, the ready ones first, from where the last connection did not go."""
        ports = list(self._ready)
        first = next(self._turns) % len(ports)
        return sorted(ports[first:] + ports[:first], key=lambda port: not self._ready[port])


async def _join(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    theirs: asyncio.StreamReader,
    to_them: asyncio.StreamWriter,
) -> None:
    """Carry bytes both ways until one way ends: HTTP knows no half of a connection."""
    ways = [asyncio.create_task(_pump(reader, to_them)), asyncio.create_task(_pump(theirs, writer))]
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        to_them.close()
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while chunk := await reader.read(CHUNK):
            writer.write(chunk)
            await writer.drain()
