"""What a worker's supervisor hears and does, as its workflow sees it: names, arguments and limits."""

from datetime import timedelta
from typing import Final

from temporalio.common import RetryPolicy

from tiny_harness.contracts import Model
from tiny_harness_engine.core.desk import Desk, News, Notice, Rules

HEAR: Final = "hear"
GIVE_NOTICE: Final = "give_notice"
TELL_SUPERVISOR: Final = "tell_supervisor"


class StartSupervisor(Model):
    """The argument of the supervisor's workflow, from one run to the next."""

    worker: str
    desk: Desk
    given: int = 0
    """How many notices were given."""


class Heard(Model):
    """The argument of its signal `hear`."""

    news: News
    rules: Rules
    """How the worker is supervised now: they follow the configuration of whoever tells the news."""


class GiveNotice(Model):
    """A notice on its way to its tasks."""

    worker: str
    cause: str
    """Names it: a task takes it once."""
    notice: Notice


NOTICE_TIMEOUT: Final = timedelta(seconds=20)
NOTICE_RETRY: Final = RetryPolicy(initial_interval=timedelta(seconds=1), maximum_interval=timedelta(seconds=10))
