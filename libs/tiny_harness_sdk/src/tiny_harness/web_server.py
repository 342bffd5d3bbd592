"""Serves one app on several listeners, with signals left to whoever owns the process."""

import asyncio
import os
import socket
from collections.abc import AsyncGenerator, Generator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Final

import uvicorn
from starlette.applications import Starlette

from tiny_harness.background import in_background
from tiny_harness.errors import ConfigError

DRAIN_TIMEOUT_S: Final = 30
"""How long calls in flight may take when the server stops. Streams are told to end at once."""


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.startup_is_over = asyncio.Event()

    def ask_to_stop(self) -> None:
        self.should_exit = True

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        try:
            await super().startup(sockets)
        except OSError as error:
            raise ConfigError(f"cannot be listened on ({error.strerror})", file=self.config.uds or "") from error
        finally:
            self.startup_is_over.set()


@asynccontextmanager
async def serving(app: Starlette, path: Path | None, tcp: socket.socket | None) -> AsyncGenerator[None]:
    """Serve an app on a Unix socket (0600) and on a bound TCP socket, whichever are given, while the block runs.

    At its end nothing more is accepted, streams end (`app.state.stop_streams`, where there are some), and calls in
    flight have `DRAIN_TIMEOUT_S`.

    Raises:
        ConfigError: The Unix socket cannot be made.
    """
    servers: list[tuple[_Server, list[socket.socket] | None]] = []
    if path is not None:
        servers.append((_Server(_config(app, uds=str(path))), None))
    if tcp is not None:
        servers.append((_Server(_config(app)), [tcp]))
    async with app.router.lifespan_context(app), AsyncExitStack() as stack:
        for server, sockets in servers:
            work = await stack.enter_async_context(in_background(server.serve(sockets), server.ask_to_stop))
            await server.startup_is_over.wait()
            if not server.started:
                await work  # raises what went wrong
        for server, _ in servers:  # before any is waited for: they drain at the same time
            stack.callback(server.ask_to_stop)
        if hasattr(app.state, "stop_streams"):
            stack.callback(app.state.stop_streams)
        if path is not None:
            os.chmod(path, 0o600)
        yield


def bind_tcp(host: str, port: int, key: str = "server.bind") -> socket.socket:
    """Bind a TCP port; `key` is the configuration's that says which.

    Raises:
        ConfigError: It is in use, or not ours to use.
    """
    sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # asyncio sets it on sockets of its own only
        sock.bind((host, port))
    except OSError as error:
        sock.close()
        raise ConfigError(f"{host}:{port} cannot be used ({error.strerror})", key=key) from error
    return sock


def _config(app: Starlette, uds: str | None = None) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        uds=uds,
        lifespan="off",  # one app, several servers: its lifespan is run once, above
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=DRAIN_TIMEOUT_S,
        timeout_keep_alive=75,
    )
