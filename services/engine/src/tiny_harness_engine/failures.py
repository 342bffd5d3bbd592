"""Our errors as Temporal failures, and Temporal's as ours. The gateway turns the former back with `errors.unpack`."""

from temporalio.exceptions import ApplicationError

from tiny_harness.errors import HarnessError, pack
from tiny_harness_engine.calls import StepAnswer


def to_failure(error: HarnessError) -> ApplicationError:
    """Make the failure that ends one call and nothing else: type = the error's name, one detail = its data."""
    name, data = pack(error)
    return ApplicationError(str(error), data, type=name, non_retryable=True)


def failed_step(cause: BaseException | None) -> StepAnswer | None:
    """Say what a failed step activity means: `None` if its worker went away or it was cut, else a failure to try again.

    A worker that died or stopped did not get to say anything: that is a timeout or a cancellation. Whoever raised an
    error would raise it again at once, so that counts as a failed attempt.
    """
    if not isinstance(cause, ApplicationError) or cause.type in ("CancelledError", "WorkerShutdown"):
        return None
    return StepAnswer(failure=str(HarnessError()), is_transient=True)
