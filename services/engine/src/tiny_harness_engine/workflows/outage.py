"""What a run does while the store is away: it waits. Nobody's work has failed, and no attempt was lost."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError

from tiny_harness.errors import Unavailable
from tiny_harness_engine.calls import LOST_ATTEMPTS, OUTAGE_BACKOFF
from tiny_harness_engine.workflows.ledger import is_final

T = TypeVar("T")


class StoreAway(Exception):
    """An activity ended because the store did not answer."""


def is_outage(error: ActivityError) -> bool:
    """Whether an activity ended because the store did not answer."""
    return isinstance(error.cause, ApplicationError) and error.cause.type == Unavailable.__name__


def outage_pause_s(count: int) -> float:
    """Say how long to wait after an activity has met the outage for the `count`th time."""
    return OUTAGE_BACKOFF[min(count, len(OUTAGE_BACKOFF)) - 1]


async def outlast(work: Callable[[int], Awaitable[T]]) -> T | None:
    """Run an activity until it answers; `None` once its worker was lost too often.

    Args:
        work: Makes an attempt, by its number from 1.

    Raises:
        ActivityError: It said that another attempt cannot help.
    """
    lost = away = 0
    while lost < LOST_ATTEMPTS:
        try:
            return await work(lost + away + 1)
        except ActivityError as error:
            if isinstance(error.cause, ApplicationError) and is_final(error.cause):
                raise
            workflow.logger.warning("an activity was stopped: %s", error.cause)
            if not is_outage(error):
                lost += 1
                continue
            away += 1
        await asyncio.sleep(outage_pause_s(away))
    return None
