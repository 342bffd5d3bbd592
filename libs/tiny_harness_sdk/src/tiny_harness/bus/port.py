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


@dataclass(frozen=True, slots=True)
class BusHealth:
    """How a process stands with the bus."""

    is_reached: bool
    """Whether frames arrive now; else streams ask the store twice a second."""
    was_reached: bool
    """Whether they ever did, since the start: if not, its address or password may be wrong."""


class BusReader(Protocol):
    """One connection of a process to the bus."""

    @property
    def is_hearing(self) -> bool:
        """Whether frames arrive; while they do not, the store must be looked at often."""
        ...

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

    @property
    def health(self) -> BusHealth:
        """How this process stands with it."""
        ...

    def publish(self, frame: Frame) -> None:
        """Hand a frame over. Never blocks, never fails; what cannot be sent in time is dropped."""
        ...

    def open_reader(self) -> AbstractAsyncContextManager[BusReader]:
        """Open this process's connection."""
        ...
