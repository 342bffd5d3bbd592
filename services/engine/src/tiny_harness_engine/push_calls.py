"""What the push workflow and its activity say to one another."""

from datetime import timedelta
from typing import Final

from temporalio.common import RetryPolicy

from tiny_harness.contracts import Model
from tiny_harness.push import PushKey

DELIVER: Final = "deliver"
"""The activity."""
TIMEOUT: Final = timedelta(minutes=1)
"""After that an engine is lost. More than a page takes: two deliveries of one configuration would break its order."""
RETRY: Final = RetryPolicy(
    initial_interval=timedelta(seconds=1), maximum_interval=timedelta(minutes=1), maximum_attempts=0
)
"""Of the activity itself, which fails only with the store or its engine; receivers have the workflow's pauses."""


class StartPush(Model):
    """Starts the deliveries of a configuration."""

    key: PushKey


class Delivered(Model):
    """How far the deliveries came."""

    is_over: bool = False
    """Whether there is nothing more to tell, ever: the task has ended, or the configuration has."""
    pause_s: float = 0.0
    """If the receiver did not take the next event: after which time it is tried again."""
    has_more: bool = False
    """Whether there is more to be told at once."""
