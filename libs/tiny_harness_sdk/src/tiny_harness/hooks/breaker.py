"""A circuit breaker: spares callers the wait for a service that has failed again and again (DESIGN: hooks).

closed --5 failures in a row--> open --10 s--> one trial --success--> closed
                                 ^-------------failure-------+
"""

import time
from collections.abc import Callable
from typing import Final, Literal

FAILURES_TO_OPEN: Final = 5
"""Failures in a row."""
TRIAL_AFTER_S: Final = 10.0
"""After a failure, how long nothing is tried."""

BreakerState = Literal["closed", "open", "trial"]


class Breaker:
    """One service's breaker. Whoever was let in says how it went, by exactly one of the three other methods."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failures = 0
        self._open_until = 0.0
        self._is_trying = False
        self.last_reason = ""
        """Why the last failure failed."""

    @property
    def state(self) -> BreakerState:
        """`trial`: the next call, or the one that runs, decides."""
        if self._failures < FAILURES_TO_OPEN:
            return "closed"
        return "trial" if self._is_trying or self._clock() >= self._open_until else "open"

    @property
    def wait_s(self) -> float:
        """Seconds until the next trial."""
        return max(0.0, self._open_until - self._clock())

    def try_enter(self) -> bool:
        """Whether a call may be made; of those that ask after a pause, only the first."""
        if self.state == "closed":
            return True
        if self.state == "open" or self._is_trying:
            return False
        self._is_trying = True
        return True

    def succeeded(self) -> None:
        """The service answered."""
        self._is_trying = False
        self._failures = 0
        self.last_reason = ""

    def failed(self, reason: str) -> None:
        """The service did not answer, or not as it should."""
        self._is_trying = False
        self._failures += 1
        self._open_until = self._clock() + TRIAL_AFTER_S
        self.last_reason = reason

    def abandoned(self) -> None:
        """The call was cancelled: it says nothing about the service."""
        self._is_trying = False
