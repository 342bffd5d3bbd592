"""Serves an executor app on a TCP port, with signals left to whoever owns the process."""

import socket
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

import uvicorn

from tiny_harness.background import in_background
from tiny_harness.errors import ConfigError
from tiny_harness.executors.app import ExecutorApp
from tiny_harness.hooks.delivery import is_loopback
from tiny_harness.web_server import bind_tcp

DEFAULT_BIND: Final = "127.0.0.1:8090"
DRAIN_TIMEOUT_S: Final = 12
"""How long calls in flight may take when the server stops: a little more than any executor has."""
MAX_CONNECTIONS: Final = 512
"""Beyond, callers get 503."""
KEEP_ALIVE_S: Final = 75


@dataclass(frozen=True, slots=True)
class Certificate:
    """What a server shows, each a file in PEM."""

    chain: Path
    """Its certificate, and those that lead to an authority."""
    key: Path

    @classmethod
    def given(cls, chain: Path | str | None, key: Path | str | None) -> Self | None:
        """Take what a command line gives: both files, or neither.

        Raises:
            ConfigError: It is one of them.
        """
        if chain is None and key is None:
            return None
        if chain is None or key is None:
            raise ConfigError("--tls-cert and --tls-key are of use together only")
        return cls(Path(chain), Path(key))


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield

    def ask_to_stop(self) -> None:
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # Whoever keeps a connection for later calls does not answer a TLS farewell, and would be waited for.
        for connection in list(self.server_state.connections):
            cycle = getattr(connection, "cycle", None)
            if cycle is None or cycle.response_complete:
                connection.transport.abort()  # pyright: ignore[reportAttributeAccessIssue] - all its kinds have one
        await super().shutdown(sockets)


@asynccontextmanager
async def serving_executors(
    app: ExecutorApp, bind: str = DEFAULT_BIND, *, unsigned: bool = False, certificate: Certificate | None = None
) -> AsyncGenerator[str]:
    """Serve an app while the block runs.

    Args:
        app: What to serve.
        bind: `HOST:PORT`; port 0 picks a free one.
        unsigned: Take unsigned calls; on loopback only.
        certificate: Serve https with it. Callers elsewhere than on this machine want that, here or from a proxy.

    Yields:
        The address for JSON-RPC, such as `http://127.0.0.1:8090/rpc`.

    Raises:
        ConfigError: The address or the certificate cannot be used, no key has a secret, or unsigned calls could come
            from elsewhere.
    """
    host, port = _split(bind)
    if unsigned and not is_loopback(host):
        raise ConfigError(f"--unsigned is for loopback only, and {bind} is none")
    site = app.asgi(unsigned=unsigned)
    try:
        tcp = bind_tcp(host, port)
    except ConfigError as error:
        raise ConfigError(error.reason, key="--bind") from error
    with tcp:
        server = _Server(_config(site, certificate))
        shown = f"[{host}]" if ":" in host else host
        async with site.router.lifespan_context(site):
            tcp.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # else an answer in two parts takes 40 ms
            tcp.listen()  # from here on callers are heard; the server takes them in a moment
            async with in_background(server.serve([tcp]), server.ask_to_stop):
                yield f"{'https' if certificate else 'http'}://{shown}:{tcp.getsockname()[1]}/rpc"


def _split(bind: str) -> tuple[str, int]:
    host, _, port = bind.rpartition(":")
    host = host.strip("[]")
    if not host or not port.isdecimal() or not port.isascii() or int(port) > 65535:
        raise ConfigError(f"{bind!r} is no HOST:PORT", key="--bind")
    return host, int(port)


def _config(site: object, certificate: Certificate | None) -> uvicorn.Config:
    config = uvicorn.Config(
        site,  # pyright: ignore[reportArgumentType] - its type of an ASGI app is narrower than Starlette's
        lifespan="off",  # run above: what goes wrong in it is raised there
        log_config=None,
        access_log=False,
        ws="none",
        server_header=False,
        limit_concurrency=MAX_CONNECTIONS,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=DRAIN_TIMEOUT_S,
        ssl_certfile=certificate.chain if certificate else None,
        ssl_keyfile=certificate.key if certificate else None,
    )
    try:
        config.load()
    except OSError as error:  # a file is missing, or no certificate and key that belong together
        files = f"{certificate.chain} with {certificate.key}" if certificate else ""
        raise ConfigError(f"{files} cannot be used ({error.strerror or error})", key="--tls-cert") from error
    return config
