"""`activity.failed` and `activity.retried`: told between the attempts at a model, to whoever listens, and no more."""

import pytest

from tests.integration.engine.conftest import Engine
from tiny_harness.errors import ModelError
from tiny_harness.hooks import Executor, call_function
from tiny_harness.hooks.contexts import ActivityContext
from tiny_harness.plugins import Plugin
from tiny_harness.settings import Settings

Told = tuple[str, int, bool, str]


def listening(told: list[Told], *, raises: bool = False) -> Plugin:
    """Make a plugin that listens to both."""

    async def hear(context: ActivityContext) -> None:
        told.append((context.operation, context.attempt, context.will_retry, context.error))
        assert not raises, "a listener of no use"

    points = ("activity.failed", "activity.retried")
    executors = [Executor(f"p/{point}", point, "post", call_function(hear)) for point in points]
    return Plugin("p", executors=tuple(executors))


@pytest.fixture
def impatient(stopped: Engine) -> Engine:
    """An engine that tries twice more, at once."""
    document = {**stopped.settings.model_dump(), "retries": {"model": [0.01, 0.01]}}
    stopped.settings = Settings.model_validate(document)
    return stopped


async def test_each_failure_and_each_further_attempt_is_told_in_order(impatient: Engine) -> None:
    told: list[Told] = []
    impatient.model.failures = [ModelError("busy", transient=True), ModelError("busier", transient=True)]
    async with impatient.working(plugins=[listening(told)]):
        task = impatient.task()
        await task.start("m1", "hello")
        await task.until_state("INPUT_REQUIRED")
    assert told == [
        ("activity.failed", 1, True, "the model failed: busy"),
        ("activity.retried", 2, False, ""),
        ("activity.failed", 2, True, "the model failed: busier"),
        ("activity.retried", 3, False, ""),
    ]
    assert await task.replies() == ["re: hello"]


async def test_a_failure_that_is_final_is_told_as_such(impatient: Engine) -> None:
    told: list[Told] = []
    impatient.model.failures = [ModelError("no such model sk-abcdefghijklmnopqrstuvwx")]
    async with impatient.working(plugins=[listening(told)]):
        task = impatient.task()
        await task.start("m1", "hello")
        await task.until_state("INPUT_REQUIRED")
    [(operation, attempt, will_retry, error)] = told
    assert (operation, attempt, will_retry) == ("activity.failed", 1, False)
    assert "no such model" in error
    assert "sk-abcdefghij" not in error


async def test_a_listener_that_fails_changes_nothing(impatient: Engine) -> None:
    told: list[Told] = []
    impatient.model.failures = [ModelError("busy", transient=True)]
    async with impatient.working(plugins=[listening(told, raises=True)]):
        task = impatient.task()
        await task.start("m1", "hello")
        await task.until_state("INPUT_REQUIRED")
    assert [operation for operation, *_ in told] == ["activity.failed", "activity.retried"]
    assert await task.replies() == ["re: hello"]
