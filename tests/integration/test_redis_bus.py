"""The bus through a real Redis: what it brings, and what it says of itself when Redis is away."""

import asyncio
import logging
import ssl
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from redis.asyncio import Redis

from tests.integration.remote_hooks.test_tls import make_certificate
from tests.ports import free_port
from tests.valkey import running_redis, running_valkey
from tiny_harness.background import in_background
from tiny_harness.bus import BusReader, Frame, Lagged, LocalBus, open_bus, publisher
from tiny_harness.bus.redis import RedisBus, open_redis_bus
from tiny_harness.bus.wire import channel_of
from tiny_harness.errors import ConfigError
from tiny_harness.seal import UNSEALED_RING, SealRing, make_key, parse_ring
from tiny_harness.settings import RedisSettings, Settings

PATIENCE_S = 30
RING = parse_ring(make_key(), "")
QUICK = RedisSettings(timeout=0.5)


class Heard:
    """What a reader has heard, in order."""

    def __init__(self, reader: BusReader) -> None:
        self.reader = reader
        self._frames: asyncio.Queue[Frame | Lagged] = asyncio.Queue()

    async def listen(self) -> None:
        async for frame in self.reader.frames():
            self._frames.put_nowait(frame)

    async def next(self) -> Frame | Lagged:
        async with asyncio.timeout(PATIENCE_S):
            return await self._frames.get()

    async def frame(self) -> Frame:
        """The next frame, whatever is said of gaps before it."""
        while isinstance(found := await self.next(), Lagged):
            continue
        return found

    async def lagged(self, *, is_hearing: bool) -> None:
        """Wait for the word that something may be missing."""
        while not (isinstance(await self.next(), Lagged) and self.reader.is_hearing == is_hearing):
            continue


@asynccontextmanager
async def hearing(bus: RedisBus, *task_ids: str) -> AsyncGenerator[Heard]:
    """Listen to tasks that are watched before there is a connection, and subscribed with it."""
    async with bus.open_reader() as reader:
        for task_id in task_ids:
            await reader.watch(task_id)
        heard = Heard(reader)
        async with in_background(heard.listen()):
            await heard.lagged(is_hearing=True)
            yield heard


async def until(condition: Callable[[], bool]) -> None:
    """Wait for what the bus does by itself and tells nobody."""
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110 - a health is asked, it tells nobody
            await asyncio.sleep(0.01)


def event(seq: int, task_id: str = "t") -> Frame:
    return Frame(task_id, seq, f'{{"n":{seq}}}', "state")


@asynccontextmanager
async def connected(url: str, ring: SealRing = RING) -> AsyncGenerator[RedisBus]:
    async with open_redis_bus(url, QUICK, ring) as bus:
        await until(lambda: bus.publisher.is_connected)
        yield bus


async def test_watched_tasks_are_heard_in_order_by_every_process_and_others_are_not(tmp_path: Path) -> None:
    async with (
        running_redis(tmp_path) as url,
        connected(url) as engine,
        open_redis_bus(url, QUICK, RING) as one,
        open_redis_bus(url, QUICK, RING) as two,
        hearing(one, "t") as first,
        hearing(two, "t") as second,
    ):
        for seq in range(1, 251):
            engine.publish(event(seq, "other"))
            engine.publish(event(seq))
        for heard in (first, second):
            assert [await heard.frame() for _ in range(250)] == [event(seq) for seq in range(1, 251)]


async def test_a_task_is_heard_from_the_moment_that_watch_returns_until_its_last_watcher_goes(tmp_path: Path) -> None:
    async with running_valkey(tmp_path) as server, connected(server.url) as bus, hearing(bus) as heard:
        reader = heard.reader
        for number in range(1, 51):
            await reader.watch("t")
            await reader.watch("t")
            await reader.unwatch("t")
            bus.publish(event(number))
            assert await heard.next() == event(number)
            await reader.unwatch("t")
        await reader.watch("mark")
        bus.publish(event(51))
        bus.publish(event(1, "mark"))
        assert await heard.next() == event(1, "mark")


async def test_redis_sees_neither_words_nor_takes_anybodys_word_for_an_event(tmp_path: Path) -> None:
    async with running_valkey(tmp_path) as server, connected(server.url) as bus, hearing(bus) as heard:
        client = Redis.from_url(server.url)
        spy = client.pubsub()
        await spy.psubscribe("*")
        await spy.get_message(timeout=PATIENCE_S)
        async with asyncio.timeout(PATIENCE_S):
            await heard.reader.watch("t")
            await client.publish(channel_of("t"), b"\0" + b'1 state\n{"forged": true}')
            await client.publish(channel_of("t"), b"junk")
            bus.publish(event(1))
            assert await heard.next() == event(1)
            seen = [await spy.get_message(timeout=PATIENCE_S) for _ in range(3)]
        assert b'"n"' not in b"".join(message["data"] for message in seen if message)
        await spy.aclose()
        await client.aclose()


async def test_a_killed_redis_is_noticed_at_once_said_once_and_found_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "tiny_harness.bus")
    async with running_valkey(tmp_path) as server, connected(server.url) as bus, hearing(bus) as heard:
        await heard.reader.watch("t")
        await server.kill()
        await heard.lagged(is_hearing=False)
        assert not bus.health.is_reached
        assert bus.health.was_reached
        bus.publish(event(1))  # lost: nobody waits for it
        back = asyncio.ensure_future(heard.lagged(is_hearing=True))
        await asyncio.sleep(1)  # several attempts, none of which is worth a word
        await server.start()
        await back
        await until(lambda: bus.health.is_reached)
        bus.publish(event(2))
        assert await heard.frame() == event(2)
    for who in ("listener", "publisher"):
        told = [record.levelname for record in caplog.records if record.name == f"tiny_harness.bus.{who}"]
        assert told == ["ERROR", "INFO"]


async def test_a_redis_that_hangs_is_noticed_and_what_it_did_not_take_is_not_waited_for(tmp_path: Path) -> None:
    async with running_valkey(tmp_path) as server, connected(server.url) as bus, hearing(bus) as heard:
        await heard.reader.watch("t")
        server.pause()
        bus.publish(event(1))
        await heard.lagged(is_hearing=False)
        await until(lambda: not (bus.health.is_reached or bus.publisher.is_connected))
        back = asyncio.ensure_future(heard.lagged(is_hearing=True))
        server.resume()
        await back
        await until(lambda: bus.publisher.is_connected)
        bus.publish(event(2))
        while (found := await heard.frame()) != event(2):  # the first may come late, when Redis wakes up
            assert found == event(1)


async def test_frames_that_had_to_be_dropped_are_told_of_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publisher, "MAX_WAITING", 10)
    async with running_valkey(tmp_path) as server, connected(server.url) as bus, hearing(bus) as heard:
        await heard.reader.watch("t")
        for seq in range(1, 101):  # faster than anybody could send
            bus.publish(event(seq))
        kept = [await heard.next() for _ in range(11)]
        assert [frame for frame in kept if isinstance(frame, Frame)] == [event(seq) for seq in range(91, 101)]
        assert sum(isinstance(frame, Lagged) for frame in kept) == 1


async def test_a_wrong_password_is_told_and_never_shown(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with running_valkey(tmp_path, "--requirepass", "right") as server:
        address = f"127.0.0.1:{server.port}"
        async with open_redis_bus(f"redis://:wr0ngw0rd@{address}/0", QUICK, RING) as bus:
            await until(lambda: bool(caplog.records))
            assert not bus.health.was_reached
        assert address in caplog.text
        assert "wr0ngw0rd" not in caplog.text
        async with connected(f"redis://:right@{address}/0") as bus:
            assert bus.health.is_reached


@asynccontextmanager
async def tls_in_front_of(port: int, certificate: Path) -> AsyncGenerator[int]:
    """Serve TLS on a port, and pass on what comes (Valkey's wheel speaks none)."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(65_536):
                writer.write(data)
        writer.close()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner, outer = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(pump(reader, outer), pump(inner, writer))

    server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=context)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


async def test_tls_is_spoken_with_a_server_that_a_named_authority_vouches_for_and_with_no_other(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    certificate = make_certificate(tmp_path)
    trusting = RedisSettings(timeout=5, ca_file=certificate)
    async with running_valkey(tmp_path) as server, tls_in_front_of(server.port, certificate) as port:
        url = f"rediss://127.0.0.1:{port}/0"
        async with open_redis_bus(url, trusting, RING) as bus, hearing(bus) as heard:
            await heard.reader.watch("t")
            bus.publish(event(1))
            assert await heard.frame() == event(1)
        caplog.clear()
        async with open_redis_bus(url, QUICK, RING) as bus:
            await until(lambda: bool(caplog.records))
            assert not bus.health.was_reached
        assert "certificate" in caplog.text.lower()


async def test_the_settings_say_which_bus_it_is(settings: Settings, tmp_path: Path) -> None:
    async with open_bus(settings, {}) as bus:
        assert isinstance(bus, LocalBus)
    environ = {"TINY_HARNESS_REDIS_URL": f"redis://:secret@127.0.0.1:{free_port()}/0"}
    async with open_bus(settings, environ) as bus:
        assert isinstance(bus, RedisBus)
        assert not bus.health.was_reached
    for bad in ("http://127.0.0.1", "redis://", "redis://h:port/0", "127.0.0.1:6379"):
        with pytest.raises(ConfigError) as failed:
            async with open_bus(settings, {"TINY_HARNESS_REDIS_URL": bad}):
                pass
        assert bad not in str(failed.value)
    needless = settings.model_copy(update={"redis": RedisSettings(ca_file=tmp_path / "ca.pem")})
    with pytest.raises(ConfigError, match=r"redis\.ca_file"):
        async with open_bus(needless, environ):
            pass


async def test_without_a_ring_messages_are_plain_and_heard(tmp_path: Path) -> None:
    async with running_valkey(tmp_path) as server, connected(server.url, UNSEALED_RING) as bus, hearing(bus) as heard:
        await heard.reader.watch("t")
        bus.publish(event(1))
        assert await heard.frame() == event(1)
