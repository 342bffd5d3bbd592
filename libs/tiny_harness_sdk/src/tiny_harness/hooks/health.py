"""How each executor is doing, for `/status` and `/_monitor`: told of every call, and looking after remote ones."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tiny_harness.errors import HookFailed, HookTransportError
from tiny_harness.hooks.executor import Executor

HealthState = Literal["up", "failing", "down", "unknown"]
"""`failing`: it is there, and its last call failed. `down`: it cannot be reached, or does not speak as agreed."""

Key = tuple[str, str]
"""An executor's name and point."""
Look = Callable[[], Awaitable[Mapping[Key, HookFailed | None]]]
"""Asks every remote service once, in bounded time; what is wrong with each executor of theirs."""

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Record:
    executor: Executor
    state: HealthState = "unknown"
    calls: int = 0
    failures: int = 0
    last_error: str | None = None


class HookHealth:
    """The health of all executors of a process. `watch` is what `Hooks` wants."""

    def __init__(
        self, executors: Sequence[Executor], *, redact: Callable[[Any], Any] = lambda document: document
    ) -> None:
        self._records = {_key(executor): _Record(executor) for executor in executors if not executor.is_builtin}
        self._redact = redact

    def watch(self, executor: Executor, failure: HookFailed | None) -> None:
        """Take note of a call; what ships with the harness is nobody's worry."""
        if executor.is_builtin:
            return
        record = self._records.setdefault(_key(executor), _Record(executor))
        record.calls += 1
        if failure is None:
            self._change(record, "up", None)
            return
        record.failures += 1
        self._change(record, _state_after(failure), failure.reason)

    async def probe(self, look: Look, interval_s: float) -> None:
        """Look after remote executors, at once and then every so often, until cancelled."""
        while True:
            await self.probe_once(look)
            await asyncio.sleep(interval_s)

    async def probe_once(self, look: Look) -> None:
        """Look after remote executors now. One that failed its last call stays `failing`: only a call can tell."""
        try:
            found = await look()
        except Exception:  # a look that breaks must not end all later ones
            log.exception("the look after remote hooks failed")
            return
        for key, failure in found.items():
            record = self._records.get(key)
            if record is None:
                continue
            if failure is not None:
                self._change(record, _state_after(failure), failure.reason)
            elif record.state != "failing":
                self._change(record, "up", None)

    def snapshot(self) -> list[dict[str, Any]]:
        """List all executors, in registration order, as a JSON document. Holds no context and no unmasked secret."""
        return [
            {
                "name": record.executor.name,
                "point": record.executor.point,
                "command": record.executor.command,
                "plugin": record.executor.plugin,
                "remote": record.executor.is_remote,
                "on_failure": record.executor.on_failure,
                "state": record.state,
                "calls": record.calls,
                "failures": record.failures,
                "last_error": record.last_error,
            }
            for record in self._records.values()
        ]

    def _change(self, record: _Record, state: HealthState, error: str | None) -> None:
        if state != record.state and "unknown" not in (state, record.state):
            log.info("hook %s at %s is %s", record.executor.name, record.executor.point, state)
        record.state = state
        record.last_error = None if error is None else self._redact(error)


def _state_after(failure: HookFailed) -> HealthState:
    return "down" if isinstance(failure, HookTransportError) else "failing"


def _key(executor: Executor) -> Key:
    return executor.name, executor.point
