"""Our errors as Temporal failures. The gateway turns them back with `errors.unpack`."""

from temporalio.exceptions import ApplicationError

from tiny_harness.errors import HarnessError, pack


def to_failure(error: HarnessError) -> ApplicationError:
    """Make the failure that ends one call and nothing else: type = the error's name, one detail = its data."""
    name, data = pack(error)
    return ApplicationError(str(error), data, type=name, non_retryable=True)
