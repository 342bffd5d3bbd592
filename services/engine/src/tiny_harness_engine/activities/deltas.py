"""Sends the pieces of a growing reply over the bus, at most 20 times a second."""

import asyncio
from typing import Final

from tiny_harness.bus import Bus, Frame
from tiny_harness.ext.stream import Delta
from tiny_harness_engine.calls import StepRequest
from tiny_harness_engine.core.wire import render_delta
from tiny_harness_engine.records import reply_id

INTERVAL_S: Final = 0.05


class DeltaSender:
    """Joins pieces that come faster than they may go out."""

    def __init__(self, bus: Bus, request: StepRequest) -> None:
        self._bus = bus
        self._request = request
        self._index = 0
        self._waiting: list[str] = []
        self._timer: asyncio.TimerHandle | None = None

    def add(self, text: str) -> None:
        """Take a piece; the first one goes out at once."""
        self._waiting.append(text)
        if self._timer is None:
            self._send()

    def close(self) -> None:
        """Send what waits. The whole reply follows as an event."""
        if self._timer is not None:
            self._timer.cancel()
        if self._waiting:
            self._send()
        if self._timer is not None:
            self._timer.cancel()

    def _send(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(INTERVAL_S, self._tick)
        request = self._request
        delta = Delta(
            message_id=reply_id(request.task_id, request.turn, request.step),
            turn=request.turn,
            step=request.step,
            attempt=request.attempt,
            index=self._index,
            text="".join(self._waiting),
        )
        self._index += 1
        self._waiting.clear()
        payload = render_delta(request.task_id, request.context_id, delta)
        self._bus.publish(Frame(request.task_id, None, payload))

    def _tick(self) -> None:
        self._timer = None
        if self._waiting:
            self._send()
