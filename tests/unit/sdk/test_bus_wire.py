"""What stands in a message on the bus, and what is taken from one."""

import pytest

from tiny_harness.bus import Frame
from tiny_harness.bus.wire import MAX_PAYLOAD_CHARS, channel_of, pack, task_of, unpack
from tiny_harness.seal import UNSEALED_RING, SealRing, make_key, parse_ring

RING = parse_ring(make_key(), "")
EVENT = Frame("t:1", 7, '{"statusUpdate": "é\\n"}\n', "reply")
DELTA = Frame("t:1", None, "{}")


@pytest.mark.parametrize("ring", [RING, UNSEALED_RING], ids=["sealed", "unsealed"])
@pytest.mark.parametrize("frame", [EVENT, DELTA], ids=["event", "delta"])
def test_a_frame_comes_back_as_it_was(ring: SealRing, frame: Frame) -> None:
    assert unpack("t:1", pack(frame, ring), ring) == frame
    assert task_of(channel_of("t:1")) == "t:1"


def test_a_long_event_travels_by_its_number() -> None:
    long = Frame("t", 7, "x" * (MAX_PAYLOAD_CHARS + 1), "reply")
    assert unpack("t", pack(long, RING), RING) == Frame("t", 7, "", None)


def test_a_kind_of_a_newer_engine_is_read_from_the_store() -> None:
    packed = pack(EVENT, UNSEALED_RING).replace(b"reply", b"novel")
    assert unpack("t:1", packed, UNSEALED_RING) == Frame("t:1", 7, EVENT.payload, None)


def test_nobody_without_a_key_can_read_write_or_move_a_message() -> None:
    sealed = pack(EVENT, RING)
    assert b"statusUpdate" not in sealed
    assert unpack("t:2", sealed, RING) is None
    assert unpack("t:1", pack(EVENT, UNSEALED_RING), RING) is None
    assert unpack("t:1", pack(EVENT, parse_ring(make_key(), "")), RING) is None
    assert unpack("t:1", sealed, UNSEALED_RING) is None


def test_a_ring_that_says_so_takes_what_is_not_sealed() -> None:
    ring = parse_ring(f"{make_key()} unsealed", "")
    assert unpack("t:1", pack(EVENT, UNSEALED_RING), ring) == EVENT


@pytest.mark.parametrize("data", [b"", b"\0", b"\0x y\n", b"\0\xff\n", b"\1", b"\1" + b"x" * 40, b"\2", b"7 reply\n{}"])
def test_what_is_no_message_of_ours_is_not_taken(data: bytes) -> None:
    found = unpack("t", data, UNSEALED_RING)
    assert found is None or (found.kind, found.seq, found.payload) == (None, None, "")
