"""A real PostgreSQL server for tests: Debian's, as a user of its own, in a temporary folder, on loopback.

It can be killed, frozen, and started again on its port. Where Docker answers and no server is installed, tests that
need no faults run on one in a container.
"""

import asyncio
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import uuid
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

import asyncpg

from tests.ports import free_port
from tests.tools import HINTS, go_without
from tests.valkey import docker_answers

PATIENCE_S: Final = 60
IMAGE: Final = "postgres:17"
OWNERS: Final = ("postgres", "nobody")
"""Who may own a server that root starts, which PostgreSQL does not want to be root's."""


class Postgres:
    """A server on one port of loopback, whose data live as long as its folder."""

    def __init__(self, folder: Path, programs: Path, *options: str) -> None:
        self.port = free_port()
        self.folder = folder
        self._programs = programs
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None
        self._owner: dict[str, Any] = {"cwd": "/"}
        if os.geteuid() == 0:
            owner = _owner()
            os.chown(folder, owner.pw_uid, owner.pw_gid)
            self._owner |= {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}

    def url(self, database: str = "postgres", user: str = "harness") -> str:
        """Name a database on it."""
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    async def prepare(self, files: Mapping[str, bytes]) -> None:
        """Make its data folder, with a user `harness` who needs no password on loopback."""
        await asyncio.to_thread(
            subprocess.run,
            [self._programs / "initdb", "-D", self.folder / "data", "-A", "trust", "-U", "harness", "-N", "-E", "UTF8"],
            check=True,
            stdout=subprocess.DEVNULL,
            **self._owner,
        )
        for name, content in files.items():
            path = self.folder / "data" / name
            path.write_bytes(content)
            path.chmod(0o600)
            os.chown(path, self._owner.get("user", -1), self._owner.get("group", -1))

    async def start(self) -> None:
        """Start it, and wait until it answers."""
        self._process = process = await asyncio.to_thread(self._spawn)
        async with asyncio.timeout(PATIENCE_S):
            while not await self._answers():
                assert process.poll() is None, (self.folder / "log").read_text()
                await asyncio.sleep(0.02)

    def _spawn(self) -> subprocess.Popen[bytes]:
        quick = ("-c", "fsync=off", "-c", "listen_addresses=127.0.0.1", "-c", f"unix_socket_directories={self.folder}")
        command = [self._programs / "postgres", "-D", self.folder / "data", "-p", str(self.port), *quick]
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen[bytes](
                [*map(str, command), *self._options], stdin=subprocess.DEVNULL, stdout=log, stderr=log, **self._owner
            )

    async def kill(self) -> None:
        """End it and its children as a crash would."""
        await self._end(signal.SIGKILL)

    async def stop(self) -> None:
        """End it as an operator would: connections are closed, all is written."""
        await self._end(signal.SIGINT)

    def pause(self) -> None:
        """Let it hang: connections stay, nothing answers."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        self._signal(signal.SIGCONT)

    async def execute(self, statement: str, database: str = "postgres") -> list[asyncpg.Record]:
        """Run one statement."""
        return await run_statement(self.url(database), statement)

    async def _end(self, number: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        children = _children(process.pid)
        process.send_signal(number)
        if number is signal.SIGKILL:
            _send(number, children)
        await asyncio.to_thread(process.wait, PATIENCE_S)

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        _send(number, [self._process.pid, *_children(self._process.pid)])

    async def _answers(self) -> bool:
        try:
            await self.execute("select 1")
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
            return False
        return True


async def run_statement(url: str, statement: str) -> list[asyncpg.Record]:
    """Run one statement on a database."""
    connection = await asyncpg.connect(url, timeout=PATIENCE_S)
    try:
        return await connection.fetch(statement)
    finally:
        await connection.close()


async def new_database(url: str, template: str = "template0") -> str:
    """Make a database beside the one that is named; gives its address."""
    name = f"d{uuid.uuid4().hex}"
    await run_statement(url, f"create database {name} template {template}")
    return f"{url.rpartition('/')[0]}/{name}"


@asynccontextmanager
async def running_postgres(*options: str, files: Mapping[str, bytes] | None = None) -> AsyncGenerator[Postgres]:
    """Run a server of this machine while the block runs; skips the test where none is installed.

    `files` are put into its data folder.
    """
    programs = find_programs()
    if programs is None:
        go_without(f"PostgreSQL is not installed: {HINTS['postgres']}")
    folder = Path(tempfile.mkdtemp(prefix="th-postgres-"))  # not in a test's own folder, which the owner cannot enter
    server = Postgres(folder, programs, *options)
    try:
        await server.prepare(files or {})
        await server.start()
        yield server
    finally:
        await server.kill()
        await asyncio.to_thread(shutil.rmtree, folder)


@asynccontextmanager
async def some_postgres() -> AsyncGenerator[str]:
    """Run whichever PostgreSQL can be had here while the block runs; gives its address."""
    if find_programs() is not None or not await asyncio.to_thread(docker_answers):
        async with running_postgres() as server:
            yield server.url()
        return
    from testcontainers.postgres import PostgresContainer

    container = PostgresContainer(IMAGE, username="harness", password="of-the-tests", dbname="postgres")
    await asyncio.to_thread(container.start)
    try:
        yield container.get_connection_url(driver=None)
    finally:
        await asyncio.to_thread(container.stop)


def find_programs() -> Path | None:
    """Find the folder of the server's programs, which Debian keeps off PATH."""
    found = shutil.which("postgres")
    if found is not None:
        return Path(found).resolve().parent
    versions = [path for path in Path("/usr/lib/postgresql").glob("*/bin") if (path / "postgres").exists()]
    return max(versions, key=lambda path: int(path.parent.name), default=None)


def _children(pid: int) -> list[int]:
    """List the processes that serve connections: each is a session of its own, which no signal to the first reaches."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _send(number: signal.Signals, pids: list[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def _owner() -> pwd.struct_passwd:
    known = {user.pw_name: user for user in pwd.getpwall()}
    return next(known[name] for name in OWNERS if name in known)
