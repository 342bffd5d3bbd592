"""The pieces of a growing reply."""

import asyncio
import json

from tiny_harness.bus import Frame, LocalBus
from tiny_harness.ext.stream import KEY, Delta
from tiny_harness_engine.activities.deltas import DeltaSender
from tiny_harness_engine.calls import StepRequest

REQUEST = StepRequest(task_id="t", context_id="c", turn=2, step=1, attempt=3, reading=())


class Recorder(LocalBus):
    def __init__(self) -> None:
        super().__init__()
        self.deltas: list[Delta] = []
        self.more = asyncio.Event()

    def publish(self, frame: Frame) -> None:
        assert frame.seq is None
        metadata = json.loads(frame.payload)["statusUpdate"]["metadata"]
        self.deltas.append(Delta.model_validate(metadata[KEY]["delta"]))
        self.more.set()


async def test_the_first_piece_goes_out_at_once_and_names_its_place() -> None:
    bus = Recorder()
    sender = DeltaSender(bus, REQUEST)
    sender.add("he")
    assert bus.deltas == [Delta(message_id="t.2.1", turn=2, step=1, attempt=3, index=0, text="he")]
    sender.close()


async def test_pieces_that_come_fast_are_joined() -> None:
    bus = Recorder()
    sender = DeltaSender(bus, REQUEST)
    sender.add("a")
    bus.more.clear()
    for piece in "bcd":
        sender.add(piece)
    assert [delta.text for delta in bus.deltas] == ["a"]
    async with asyncio.timeout(5):
        await bus.more.wait()
    assert [(delta.index, delta.text) for delta in bus.deltas] == [(0, "a"), (1, "bcd")]
    sender.close()


async def test_closing_sends_what_waits_and_nothing_after() -> None:
    bus = Recorder()
    sender = DeltaSender(bus, REQUEST)
    sender.add("a")
    sender.add("b")
    sender.close()
    assert "".join(delta.text for delta in bus.deltas) == "ab"
    assert sender._timer is None or sender._timer.cancelled()
