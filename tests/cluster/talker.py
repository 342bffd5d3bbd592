"""Somebody who holds a conversation with a cluster, whatever dies in it, and keeps what they were told."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final
from uuid import uuid4

from tests.cluster.cluster import Cluster
from tiny_harness.client import HarnessClient
from tiny_harness.client.result import TurnResult

DOUBT: Final = "Did the call take effect?"


@dataclass(frozen=True)
class Said:
    """A message that was answered."""

    text: str
    result: TurnResult
    sent_at: float
    answered_at: float


@dataclass
class Talker:
    """One conversation. Its words are different each time, so that each answer can be told from all others."""

    name: str
    client: HarnessClient
    cluster: Cluster
    rng: random.Random
    said: dict[str, Said] = field(default_factory=dict[str, Said])
    """By the id of the message."""
    waiting: dict[str, str] = field(default_factory=dict[str, str])
    """What was sent and is not answered yet."""
    doubts: list[str] = field(default_factory=list[str])
    """Bookings after which the harness asked whether they were made."""
    task_id: str = ""
    _count: int = 0

    async def begin(self) -> None:
        """Start the conversation."""
        self.task_id = (await self._say("hello")).task.task_id

    async def talk(self, is_over: asyncio.Event) -> None:
        """Say one thing after the other, until it is over and the last one is answered."""
        while not is_over.is_set():
            await self.rng.choices(ACTS, WEIGHTS)[0](self)

    async def plain(self) -> None:
        """Say something that is answered at once."""
        text = f"word {self._next()}"
        result = await self._say(text)
        assert result.reply.endswith(f": {text}"), (text, result.reply)

    async def think(self) -> None:
        """Say something whose answer takes a second."""
        assert (await self._say(f"think {self._next()}")).reply == "I have thought."

    async def wait(self) -> None:
        """Say something whose answer takes three seconds."""
        assert (await self._say(f"take your time {self._next()}")).reply == "That took its time."

    async def both(self) -> None:
        """Say something, and a word more while the first is thought about."""
        await asyncio.gather(self._say(f"think {self._next()}"), self._say(f"word {self._next()}"))

    async def book(self) -> None:
        """Have something booked that must not be booked twice; say what is in the books if that is in doubt."""
        what = f"{self.name}-{self._next()}"
        result = await self._say(f"book {what}")
        if DOUBT in result.reply:
            self.doubts.append(what)
            known = "is" if what in self.cluster.bookings else "is not"
            await self._say(f"it {known} in the books {self._next()}")

    async def deploy(self) -> None:
        """Give a command that the hook host carries out."""
        result = await self._say(f"/deploy {self.name}-{self._next()}")
        assert result.command is not None, result.reply

    async def deploy_meanwhile(self) -> None:
        """Give the command in the middle of a turn."""
        await asyncio.gather(self._say(f"think {self._next()}"), self.deploy())

    def _next(self) -> int:
        self._count += 1
        return self._count

    async def _say(self, text: str) -> TurnResult:
        message_id, sent_at = uuid4().hex, time.monotonic()
        self.waiting[message_id] = text
        result = await self.client.send(text, task_id=self.task_id or None, message_id=message_id)
        del self.waiting[message_id]
        self.said[message_id] = Said(text, result, sent_at, time.monotonic())
        return result


ACTS: Final[tuple[Callable[[Talker], Awaitable[None]], ...]] = (
    Talker.plain,
    Talker.think,
    Talker.wait,
    Talker.both,
    Talker.book,
    Talker.deploy,
    Talker.deploy_meanwhile,
)
WEIGHTS: Final = (3, 2, 1, 2, 4, 2, 1)
