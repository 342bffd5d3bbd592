"""A service on a real socket that does whatever a test wants, well or badly."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

STOP_S = 10
"""How long open connections may take to notice that the server is gone."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request as it arrived."""

    method: str
    path: str
    headers: dict[str, str]
    """Names in small letters."""
    body: bytes

    @property
    def call(self) -> dict[str, Any]:
        """The JSON-RPC call in it."""
        return json.loads(self.body)


Handler = Callable[[Request, asyncio.StreamWriter], Awaitable[None]]
"""Answers one request on the connection; closes the writer to hang up."""


async def answer(
    writer: asyncio.StreamWriter, document: Any, status: str = "200 OK", headers: dict[str, str] | None = None
) -> None:
    """Write a whole HTTP answer with a JSON body, or with none."""
    body = b"" if document is None else document if isinstance(document, bytes) else json.dumps(document).encode()
    lines = {"Content-Type": "application/json", "Content-Length": str(len(body)), **(headers or {})}
    head = f"HTTP/1.1 {status}\r\n" + "".join(f"{name}: {value}\r\n" for name, value in lines.items()) + "\r\n"
    writer.write(head.encode() + body)
    await writer.drain()


async def result(request: Request, writer: asyncio.StreamWriter, patch: Any) -> None:
    """Answer a JSON-RPC call with a result."""
    await answer(writer, {"jsonrpc": "2.0", "id": request.call["id"], "result": patch})


@asynccontextmanager
async def listening(handler: Handler, port: int = 0) -> AsyncGenerator[str]:
    """Serve on loopback while the block runs; its URL."""
    connections: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        connections.add(task)
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                while not writer.is_closing():
                    await handler(await _read(reader), writer)
        finally:
            connections.discard(task)
            writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", port, limit=1 << 22)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/hooks"
    finally:
        server.close()
        for task in list(connections):
            task.cancel()
        if connections:
            await asyncio.wait(connections, timeout=STOP_S)


def port_of(url: str) -> int:
    """The port in a URL of ours."""
    return int(url.split(":")[2].split("/")[0])


async def _read(reader: asyncio.StreamReader) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, path, _ = head[0].split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
    if headers.get("transfer-encoding") == "chunked":
        body = b""
        while size := int(await reader.readline(), 16):
            body += (await reader.readexactly(size + 2))[:-2]
        await reader.readline()
    else:
        body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Request(method, path, headers, body)
