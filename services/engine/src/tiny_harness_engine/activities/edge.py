"""The edge of an activity: what comes out of it when something goes wrong."""

from collections.abc import Generator
from contextlib import contextmanager

from temporalio import activity
from temporalio.exceptions import ApplicationError

from tiny_harness.errors import HarnessError, Unavailable
from tiny_harness_engine.failures import to_failure


@contextmanager
def edge(what: str, *names: object) -> Generator[None]:
    """Let out what is worth another attempt; log all else, and tell it in fixed words as a failure that stands.

    Args:
        what: Words for the log, with a place for each of the names.
        names: Of what the activity works on.
    """
    try:
        yield
    except (Unavailable, ApplicationError):
        raise
    except Exception as error:
        activity.logger.exception(what, *names)
        raise to_failure(HarnessError()) from error
