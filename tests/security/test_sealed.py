"""What a whole conversation leaves in Temporal's database and shows to Redis: ids, and no word of it."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest
from redis.asyncio import Redis

from tests.security.harness import Person, whole_harness
from tests.valkey import running_valkey
from tiny_harness.background import in_background
from tiny_harness.ext import stream

WORDS: Final = ("Rumpelstiltskin", "Bluebeard", "Cinderella", "Snowdrop")
"""What is said: in a message, a description of a sub-task, an unknown model's name, the reason to stop."""
WATCHED_S: Final = 60


class Spy:
    """All that a Redis is told, seen as its administrator may: by MONITOR, and as any subscriber."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.heard = bytearray()
        self.messages = 0

    @asynccontextmanager
    async def watching(self) -> AsyncGenerator[None]:
        """Watch while the block runs."""
        async with Redis.from_url(self._url) as client, client.pubsub() as pubsub, client.monitor() as monitor:
            await pubsub.psubscribe("*")
            await pubsub.get_message(timeout=WATCHED_S)

            async def subscribe() -> None:
                async for message in pubsub.listen():
                    self.heard += message["data"]
                    self.messages += 1

            async def look() -> None:
                async for told in monitor.listen():
                    self.heard += told["command"].encode("utf-8", "surrogateescape")

            async with in_background(subscribe()), in_background(look()):
                yield

    async def until_heard(self, count: int) -> None:
        """Wait for so many messages at least."""
        async with asyncio.timeout(WATCHED_S):
            while self.messages < count:  # noqa: ASYNC110 - Redis tells no end
                await asyncio.sleep(0.02)


async def converse(ann: Person) -> str:
    """Say each of the words in its own way."""
    said = await ann.say(f"Tell {WORDS[0]} that I know")
    assert WORDS[0] in said.words, "the model repeats what it hears"
    assert (await ann.say(f"/sub-task {WORDS[1]} opens the door", said.task_id)).outcome == "done"
    assert (await ann.say(f"/model {WORDS[2]}", said.task_id)).outcome == "refused"
    await ann.say(f"{WORDS[3]} sleeps", said.task_id)
    await ann.cancel(said.task_id)
    return said.task_id


def kept_in(folder: Path, name: str) -> bytes:
    """A database as it lies on the disk, with what is not in its main file yet."""
    return b"".join(path.read_bytes() for path in sorted(folder.glob(f"{name}*")))


async def test_neither_temporals_database_nor_redis_holds_a_word_of_a_conversation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_valkey(tmp_path) as server:
        monkeypatch.setenv("TINY_HARNESS_REDIS_URL", server.url)
        spy = Spy(server.url)
        async with spy.watching(), whole_harness(tmp_path) as harness:
            ann = harness.person("ann")
            task_id = await converse(ann)
            await spy.until_heard((await ann.task(task_id))["metadata"][stream.KEY]["seq"])
    assert (tmp_path / "seal.keys").stat().st_mode & 0o077 == 0
    temporal, store = kept_in(tmp_path, "temporal.db"), kept_in(tmp_path, "store.db")
    # Both have seen the conversation: its id is in all of them, its words in the store alone.
    for kept in (temporal, store, bytes(spy.heard)):
        assert task_id.encode() in kept
    for word in WORDS:
        assert word.encode() in store, word
        assert word.encode() not in temporal, word
        assert word.encode() not in spy.heard, word
