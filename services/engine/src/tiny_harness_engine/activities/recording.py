"""Writes down what cannot be had again for nothing: a model's answer, a call's result."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from tiny_harness.errors import Unavailable

T = TypeVar("T")

RECORD_ATTEMPTS: Final = 60
RECORD_PAUSE_S: Final = 2.0

log = logging.getLogger(__name__)


async def write_down(write: Callable[[], Awaitable[T]]) -> T:
    """Write to the store, also if that needs a while to take it.

    Raises:
        Unavailable: It took nothing for minutes.
    """
    for _ in range(RECORD_ATTEMPTS - 1):
        try:
            return await write()
        except Unavailable as error:
            log.warning("what was done cannot be recorded yet: %s", error)
            await asyncio.sleep(RECORD_PAUSE_S)
    return await write()
