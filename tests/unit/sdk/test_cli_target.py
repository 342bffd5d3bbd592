"""Commands go on at the next harness when theirs goes away."""

import argparse
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import tiny_harness.client
import tiny_harness.local
from tiny_harness.address import Address
from tiny_harness.cli import send, start, tasks
from tiny_harness.client import HarnessClient, Question, TaskView, TurnResult
from tiny_harness.errors import ConfigError, ConnectionLost, HarnessError, TaskEnded, TaskNotCancelable, Unavailable
from tiny_harness.states import AWAITING_ANSWER, AWAITING_APPROVAL, AWAITING_BUDGET, AWAITING_NEXT_MESSAGE, TaskState


class Harnesses:
    """A row of harnesses, each of which fails in its own way before one answers."""

    def __init__(self) -> None:
        self.failures: list[HarnessError] = []
        self.view = TaskView("t1", "c1", TaskState.INPUT_REQUIRED, AWAITING_NEXT_MESSAGE)
        self.opened = 0
        self.sent: list[tuple[str, str | None, str | None]] = []

    def fail_with(self, *failures: HarnessError) -> None:
        """Let the coming calls fail."""
        self.failures = [*failures]

    async def send(
        self, text: str, *, task_id: str | None, message_id: str | None, idempotency_key: str | None
    ) -> TurnResult:
        self.sent.append((text, message_id, idempotency_key))
        self._fail()
        return TurnResult(self.view, "well")

    async def answer(
        self, task_id: str, request_id: str, value: str, reason: str | None, *, message_id: str | None
    ) -> TurnResult:
        self.sent.append((f"{task_id} {request_id} {value} {reason}", message_id, None))
        self._fail()
        return TurnResult(self.view, "well")

    async def complete(self, task_id: str) -> TaskView:
        self._fail()
        return self.view

    cancel = complete

    async def task(self, task_id: str, history_length: int | None = None) -> TaskView:
        return self.view

    def _fail(self) -> None:
        if self.failures:
            raise self.failures.pop(0)


@pytest.fixture
def harnesses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Harnesses:
    row = Harnesses()

    @asynccontextmanager
    async def open_harness(*_: Any, **__: Any) -> AsyncGenerator[Address]:
        row.opened += 1
        yield Address("http://localhost")

    @asynccontextmanager
    async def connect(*_: Any, **__: Any) -> AsyncGenerator[Harnesses]:
        yield row

    monkeypatch.setattr(tiny_harness.local, "open_harness", open_harness)
    monkeypatch.setattr(tiny_harness.client, "connect", connect)
    monkeypatch.setattr(start, "RETRY_PAUSE_S", 0)
    text = f"model.provider = 'scripted'\nstore.sqlite_path = '{tmp_path / 'x.db'}'\n"
    (tmp_path / "c.toml").write_text(text)
    return row


def arguments(tmp_path: Path, **more: Any) -> argparse.Namespace:
    defaults = {"config": str(tmp_path / "c.toml"), "url": None, "token": None, "participant": "ann"}
    return argparse.Namespace(**defaults | {"task": None, "json": False, "worker": None} | more)


async def call(args: argparse.Namespace) -> TurnResult:
    async def say(client: HarnessClient) -> TurnResult:
        return await client.send("hi", task_id=None, message_id="m", idempotency_key="m")

    return await start.call_target(args, say)


async def test_a_lost_harness_is_looked_for_anew(harnesses: Harnesses, tmp_path: Path) -> None:
    harnesses.fail_with(ConnectionLost("gone"), ConnectionLost("gone again"))
    assert (await call(arguments(tmp_path))).reply == "well"
    assert harnesses.opened == 3


async def test_a_busy_harness_is_asked_again_and_kept(harnesses: Harnesses, tmp_path: Path) -> None:
    harnesses.fail_with(Unavailable("busy", retry_after_s=0))
    await call(arguments(tmp_path))
    assert harnesses.opened == 1


async def test_a_harness_that_stays_away_is_given_up(
    harnesses: Harnesses, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(start, "RETRY_FOR_S", -1.0)
    for failure in (ConnectionLost("gone"), Unavailable("busy", retry_after_s=0)):
        harnesses.fail_with(failure)
        with pytest.raises(type(failure)):
            await call(arguments(tmp_path))


async def test_a_named_address_has_no_other_harness(harnesses: Harnesses, tmp_path: Path) -> None:
    harnesses.fail_with(ConnectionLost("gone"))
    with pytest.raises(ConnectionLost):
        await call(arguments(tmp_path, url="http://agent.example"))
    assert harnesses.opened == 0


def test_a_message_keeps_its_id_over_all_harnesses(
    harnesses: Harnesses, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    harnesses.fail_with(ConnectionLost("gone"))
    assert send.run(arguments(tmp_path, text="hi")) == 0
    assert capsys.readouterr().out == "well\n"
    assert len(harnesses.sent) == 2
    assert len(set(harnesses.sent)) == 1
    assert harnesses.sent[0][1] == harnesses.sent[0][2] is not None


@pytest.mark.parametrize("sub_state", [AWAITING_ANSWER, AWAITING_APPROVAL, AWAITING_BUDGET])
def test_a_task_that_asks_ends_send_with_3(harnesses: Harnesses, tmp_path: Path, sub_state: str) -> None:
    question = Question(sub_state, "May I?")
    harnesses.view = TaskView("t1", "c1", TaskState.INPUT_REQUIRED, sub_state, question=question)
    assert send.run(arguments(tmp_path, text="hi")) == 3


def test_an_answer_keeps_its_id_over_all_harnesses(harnesses: Harnesses, tmp_path: Path) -> None:
    harnesses.fail_with(ConnectionLost("gone"))
    words = {"verb": "answer", "task": "t1", "request": "1.1.0", "value": "refuse", "reason": "too much"}
    assert tasks.run(arguments(tmp_path, **words)) == 0
    assert [text for text, _, _ in harnesses.sent] == ["t1 1.1.0 refuse too much"] * 2
    assert len(set(harnesses.sent)) == 1


@pytest.mark.parametrize("text", ["", " \n", "a\udcffb"])
def test_a_message_without_words_or_of_no_text_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError):
        send.run(arguments(tmp_path, text=text))


@pytest.mark.parametrize(
    ("verb", "state", "refusal"),
    [("complete", TaskState.COMPLETED, TaskEnded), ("cancel", TaskState.CANCELED, TaskNotCancelable)],
)
def test_an_end_whose_answer_was_lost_is_no_refusal(
    harnesses: Harnesses, tmp_path: Path, verb: str, state: TaskState, refusal: type[TaskEnded]
) -> None:
    harnesses.view = TaskView("t1", "c1", state)
    harnesses.fail_with(ConnectionLost("gone"), refusal("t1", state.word))
    assert tasks.run(arguments(tmp_path, verb=verb, task="t1")) == 0
    harnesses.fail_with(refusal("t1", state.word))
    with pytest.raises(refusal):
        tasks.run(arguments(tmp_path, verb=verb, task="t1"))


def test_an_end_of_another_kind_is_a_refusal_always(harnesses: Harnesses, tmp_path: Path) -> None:
    harnesses.fail_with(ConnectionLost("gone"), TaskEnded("t1", "FAILED"))
    with pytest.raises(TaskEnded):
        tasks.run(arguments(tmp_path, verb="complete", task="t1"))
