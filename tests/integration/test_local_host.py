"""A harness on one machine: it starts, is found, is attached to, and leaves nothing behind."""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from tests.e2e.process import PATIENCE_S, ROOT, children_of, running, until_gone
from tiny_harness.client import connect
from tiny_harness.errors import AlreadyRunning, ConfigError
from tiny_harness.host import find_host
from tiny_harness.local import open_harness, running_harness
from tiny_harness.locks import hold_lock
from tiny_harness.settings import Settings


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path


async def test_a_second_one_attaches_to_the_first(settings: Settings, home: Path) -> None:
    async with running_harness(settings, home=home) as first, open_harness(settings, home=home) as address:
        assert address == first.address
        async with connect(address, "ann") as client:
            result = await client.send("Hello!")
            assert result.reply
    assert find_host(home) is None


async def test_a_second_host_is_told_who_holds_the_home(settings: Settings, home: Path) -> None:
    async with running_harness(settings, home=home):
        with pytest.raises(AlreadyRunning) as caught:
            async with running_harness(settings, home=home):
                pass
    assert (caught.value.pid, caught.value.what) == (os.getpid(), str(home))


async def test_two_that_start_at_once_become_one(settings: Settings, home: Path) -> None:
    both_done = asyncio.Barrier(2)

    async def talk(name: str) -> str:
        async with open_harness(settings, home=home) as address, connect(address, name) as client:
            reply = (await client.send(f"My name is {name}")).reply
            await both_done.wait()
            return reply

    replies = await asyncio.gather(talk("Ada"), talk("Bob"))
    assert "Ada" in replies[0]
    assert "Bob" in replies[1]


async def test_everything_in_the_home_is_for_its_owner_only(settings: Settings, home: Path) -> None:
    async with running_harness(settings, home=home) as harness, connect(harness.address, "ann") as client:
        await client.send("Hello!")
        assert await asyncio.to_thread(_open_to_others, home) == []


def _open_to_others(home: Path) -> list[Path]:
    return [path for path in home.rglob("*") if path.lstat().st_mode & 0o077]


async def test_a_very_deep_home_works_too(settings: Settings, home: Path) -> None:
    deep = home / ("d" * 100)
    deep.mkdir()
    async with running_harness(settings, home=deep), open_harness(settings, home=deep) as address:
        assert address.socket is not None


async def test_a_port_in_use_is_named_and_nothing_stays(settings: Settings, home: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        bind = f"127.0.0.1:{taken.getsockname()[1]}"
        server = settings.server.model_copy(update={"bind": bind})
        with pytest.raises(ConfigError) as caught:
            async with running_harness(settings.model_copy(update={"server": server}), home=home, serve_tcp=True):
                pass
    assert caught.value.key == "server.bind"
    assert children_of(home) == []
    with hold_lock(home / "run" / "harness.lock", "free again"):
        assert find_host(home) is None


async def test_a_start_that_fails_late_leaves_no_server(settings: Settings, home: Path) -> None:
    broken = settings.model_copy(update={"scripted": settings.scripted.model_copy(update={"script": home / "no.toml"})})
    with pytest.raises(ConfigError):
        async with running_harness(broken, home=home):
            pass
    await until_gone(home)
    async with running_harness(settings, home=home):
        assert find_host(home) is not None


async def test_an_exception_of_the_block_comes_out_as_it_is(settings: Settings, home: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        async with running_harness(settings, home=home):
            raise ZeroDivisionError


async def test_a_stale_socket_and_note_do_no_harm(settings: Settings, home: Path) -> None:
    (home / "run").mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(home / "run" / "harness.sock"))
    (home / "run" / "host.json").write_text('{"socket": "%s"}' % (home / "run" / "harness.sock"))
    assert find_host(home) is None
    async with open_harness(settings, home=home) as address:
        assert find_host(home) == address


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
async def test_no_process_outlives_the_harness(tmp_path: Path, number: signal.Signals) -> None:
    home = tmp_path / "home"
    async with running(home) as harness:
        assert len(children_of(home)) == 1
        await harness.end(number)
    await until_gone(home)
    async with running(home) as harness:
        assert await harness.send("m1", "hi")
        await harness.end(signal.SIGTERM)
    await until_gone(home)


@asynccontextmanager
async def half_started(home: Path) -> AsyncGenerator[asyncio.subprocess.Process]:
    """A harness in a process of its own that has a Temporal server and waits for its engine for ever."""
    words = (sys.executable, "-m", "tests.integration.half_started", str(home))
    process = await asyncio.create_subprocess_exec(*words, cwd=ROOT, stdout=asyncio.subprocess.PIPE)
    assert process.stdout
    try:
        async with asyncio.timeout(PATIENCE_S):
            assert await process.stdout.readline() == b"half\n"
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
async def test_a_start_that_is_broken_off_leaves_nothing(
    settings: Settings, home: Path, number: signal.Signals
) -> None:
    async with half_started(home) as process, asyncio.timeout(PATIENCE_S):
        assert len(children_of(home)) == 1
        assert find_host(home) is None
        process.send_signal(number)
        assert await process.wait() == (-9 if number == signal.SIGKILL else 0)
        await until_gone(home)
    async with open_harness(settings, home=home) as address:
        assert find_host(home) == address


async def test_who_comes_while_another_starts_waits_and_takes_its_place(settings: Settings, home: Path) -> None:
    async with half_started(home) as process, asyncio.timeout(PATIENCE_S):
        is_refused = asyncio.Event()

        async def come() -> None:
            with pytest.raises(AlreadyRunning) as caught:
                async with running_harness(settings, home=home):
                    pass
            assert caught.value.pid == process.pid
            is_refused.set()
            async with open_harness(settings, home=home) as address:
                assert find_host(home) == address

        comer = asyncio.ensure_future(come())
        await is_refused.wait()
        process.kill()
        await comer


async def test_loading_and_hosting_touch_no_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nobody = tmp_path / "nobody"
    nobody.mkdir()
    monkeypatch.setenv("HOME", str(nobody))
    config = tmp_path / "c.toml"
    config.write_text(f"[model]\nprovider = 'scripted'\n[store]\nsqlite_path = '{tmp_path / 'data' / 'store.db'}'")
    async with running_harness(Settings.load(config)):
        assert (tmp_path / "data" / "store.db").exists()
    assert list(nobody.iterdir()) == []


async def test_a_temporal_server_that_is_killed_alone_is_started_again(tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with running(home) as harness:
        task_id = await harness.send("m1", "one")
        [server] = children_of(home)
        os.kill(server, signal.SIGKILL)
        async with asyncio.timeout(60):
            while await harness.send("m2", "two", task_id) is None:  # noqa: ASYNC110 - as a client does at a 503
                await asyncio.sleep(0.2)
        assert children_of(home) != [server]


async def test_a_damaged_database_of_temporals_is_named_with_the_remedy(settings: Settings, home: Path) -> None:
    (home / "temporal.db").write_bytes(b"no database at all " * 300)
    with pytest.raises(ConfigError, match="Delete it") as caught:
        async with running_harness(settings, home=home):
            pass
    assert caught.value.file == str(home / "temporal.db")


async def test_who_stays_when_the_host_leaves_takes_over(settings: Settings, home: Path) -> None:
    async with AsyncExitStack() as host:
        await host.enter_async_context(running_harness(settings, home=home))
        async with open_harness(settings, home=home, take_over=True) as address, connect(address, "ann") as client:
            first = await client.send("My name is Ada")
            await host.aclose()
            async with asyncio.timeout(60):
                again = await client.send("What is my name?", task_id=first.task.task_id)
            assert "Ada" in again.reply
