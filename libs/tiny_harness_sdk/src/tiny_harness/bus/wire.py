"""How frames travel: the channel of a task, and what stands in a message, sealed or not."""

from typing import Final, cast, get_args

from tiny_harness.bus.port import Frame
from tiny_harness.contracts import shard
from tiny_harness.events import EventKind
from tiny_harness.seal import SealRing

NOTES: Final = "tiny-harness:notes"
"""Where an engine says that it could not publish everything."""
NOTE: Final = Frame(NOTES, None, "")
MAX_PAYLOAD_CHARS: Final = 64_000
"""A longer event travels by its number alone, and is read from the store."""

_PLAIN: Final = b"\0"
_SEALED: Final = b"\1"
_KINDS: Final = frozenset(get_args(EventKind))


def channel_of(task_id: str) -> str:
    """Name a task's channel."""
    return f"tiny-harness:{shard(task_id)}:{task_id}"


def task_of(channel: str) -> str:
    """Say whose channel it is."""
    return channel.split(":", 2)[2]


def pack(frame: Frame, ring: SealRing) -> bytes:
    """Write a frame; the task is named by its channel, and sealed in."""
    is_short = len(frame.payload) <= MAX_PAYLOAD_CHARS
    kind, payload = (frame.kind or "", frame.payload) if is_short else ("", "")
    body = f"{frame.seq or ''} {kind}\n{payload}".encode()
    return _PLAIN + body if ring.is_empty else _SEALED + ring.seal(body, _place(frame.task_id))


def unpack(task_id: str, data: bytes, ring: SealRing) -> Frame | None:
    """Read a frame; `None` if it is not one of ours, which says nothing about the task."""
    body: bytes | None = data[1:]
    if data[:1] == _SEALED:
        body = ring.open(data[1:], _place(task_id))
    elif data[:1] != _PLAIN or not ring.opens_unsealed:
        return None
    return None if body is None else _read(task_id, body)


def _read(task_id: str, body: bytes) -> Frame | None:
    try:
        head, _, payload = body.decode().partition("\n")
        seq, _, kind = head.partition(" ")
        number = int(seq) if seq else None
    except ValueError:
        return None
    known = cast(EventKind, kind) if kind in _KINDS else None  # of another kind: the store is read
    return Frame(task_id, number, payload, known)


def _place(task_id: str) -> str:
    return f"bus:{task_id}"
