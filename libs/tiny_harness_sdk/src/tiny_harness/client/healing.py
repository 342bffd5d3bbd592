"""Keeps calls and streams alive while a harness goes away and comes back."""

import asyncio
import random
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final, Protocol

from tiny_harness.client.calls import Calls
from tiny_harness.client.events import Connected, Reconnecting, TaskEvent
from tiny_harness.errors import ConnectionLost, HarnessError, Unavailable

FIRST_PAUSE_S: Final = 0.1
LONGEST_PAUSE_S: Final = 3.0
STEADY_S: Final = 5.0
"""A stream that held for so long was a good one, also if it had nothing to say."""


class Healing:
    """Paces the attempts of one call or stream.

    Args:
        heal_s: Seconds of failing after which the last error is raised; `None` never gives up.
    """

    def __init__(self, heal_s: float | None) -> None:
        self._heal_s = heal_s
        self._attempt = 0
        self._since: float | None = None
        self._connected_at: float | None = None

    def connected(self) -> None:
        """Note that the harness can be reached; whether a stream holds is to be seen."""
        self._connected_at = time.monotonic()

    def succeeded(self) -> None:
        """Note that the harness answered: the next failure starts the clock anew."""
        self._attempt = 0
        self._since = None

    async def pause(self, error: HarnessError) -> None:
        """Wait before the next attempt, longer each time and never twice the same.

        Raises:
            HarnessError: The given one, once the time is up.
        """
        now = time.monotonic()
        if self._connected_at is not None and now - self._connected_at > STEADY_S:
            self.succeeded()
        self._connected_at = None
        self._since = now if self._since is None else self._since
        pause = min(FIRST_PAUSE_S * 2**self._attempt, LONGEST_PAUSE_S) * random.uniform(0.5, 1.0)
        if isinstance(error, Unavailable):
            pause = max(pause, float(error.retry_after_s))
        if self._heal_s is not None and now + pause - self._since > self._heal_s:
            raise error
        self._attempt = min(self._attempt + 1, 10)
        await asyncio.sleep(pause)


class Track(Protocol):
    """What one stream is about: how to open it, what it has seen, when it is over."""

    is_over: bool

    @property
    def known_task(self) -> str | None:
        """The task, once an attempt resumes it."""
        ...

    def attempt(self, calls: Calls) -> AsyncGenerator[TaskEvent]:
        """Open the stream, or resume it where it stands."""
        ...

    def see(self, event: TaskEvent) -> bool:
        """Take an event in; `False` if it was seen before."""
        ...

    def is_told(self) -> bool:
        """Whether a stream that the server closed has told everything."""
        ...


async def heal_stream(track: Track, calls: Calls, healing: Healing) -> AsyncGenerator[TaskEvent]:
    """Yield a track's events until it is over, over as many connections as it takes.

    A lost connection is told once by `Reconnecting`, its return once by `Connected`.

    Raises:
        ConnectionLost, Unavailable: For longer than the healing allows.
        HarnessError: The server refused.
    """
    is_lost = False
    while True:
        error: HarnessError = ConnectionLost("the harness closed the stream")
        try:
            if is_lost and track.known_task:
                # A resumed stream may have nothing to say for long: ask for something to know that we are back.
                await calls.task(track.known_task, 0)
                healing.connected()
                is_lost = False
                yield Connected()
            async with aclosing(track.attempt(calls)) as events:
                async for event in events:
                    healing.succeeded()
                    if is_lost:
                        is_lost = False
                        yield Connected()
                    if track.see(event):
                        yield event
                    if track.is_over:
                        return
            if track.is_told():
                return
        except (ConnectionLost, Unavailable) as lost:
            error = lost
        if not is_lost:
            is_lost = True
            yield Reconnecting(reason=str(error))
        await healing.pause(error)
