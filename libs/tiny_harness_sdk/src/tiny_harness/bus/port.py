"""The bus: tells gateways at once what was committed. It may lose; the store fills the gaps."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from tiny_harness.events import EventKind


@dataclass(frozen=True, slots=True)
class Frame:
    """One published piece: a durable event (`seq` set) or a token delta (`seq` is `None`)."""

    task_id: str
    seq: int | None
    payload: str
    """An A2A StreamResponse as JSON."""
    kind: EventKind | None = None
    """Of a durable event."""


class Lagged:
    """Says that frames may have been missed: look at the store once."""


class BusReader(Protocol):
    """One connection of a process to the bus."""

    async def watch(self, task_id: str) -> None:
        """Start to receive a task's frames; counted, so two watchers need two `unwatch`."""
        ...

    async def unwatch(self, task_id: str) -> None:
        """Undo one `watch`."""
        ...

    def frames(self) -> AsyncIterator[Frame | Lagged]:
        """Yield what is published for watched tasks, in the order of publishing per task."""
        ...


class Bus(Protocol):
    """A way to publish and to read."""

    def publish(self, frame: Frame) -> None:
        """Hand a frame over. Never blocks, never fails; what cannot be sent in time is dropped."""
        ...

    def open_reader(self) -> AbstractAsyncContextManager[BusReader]:
        """Open this process's connection."""
        ...
