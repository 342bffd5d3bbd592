"""What is made of a stranger's tasks, and what a brief is on the wire."""

from typing import Any

import pytest
from a2a.types import Message, StreamResponse, Task
from google.protobuf import json_format

from tiny_harness.envelope import MEDIA_TYPE
from tiny_harness.ext import commands, status
from tiny_harness.intake import read_message as understand
from tiny_harness.states import TaskState
from tiny_harness_engine.agents.brief import Brief, brief_message
from tiny_harness_engine.agents.fault import AgentFault
from tiny_harness_engine.agents.reading import MAX_WORDS_CHARS, read_event, read_message, read_task


def task(state: str = "TASK_STATE_WORKING", says: str | None = None, **more: Any) -> Task:
    found: dict[str, Any] = {"state": state}
    if says is not None:
        found["message"] = {"messageId": "m1", "role": "ROLE_AGENT", "parts": [{"text": says}]}
    return json_format.ParseDict({"id": "t1", "contextId": "c", "status": found, **more}, Task())


def made(*parts: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"artifactId": "a", "parts": list(parts)}]


@pytest.mark.parametrize("state", list(TaskState))
def test_every_state_of_the_protocol_is_read(state: TaskState) -> None:
    assert read_task(task(state.value)).state is state


def test_a_state_that_the_protocol_does_not_have_is_a_fault() -> None:
    with pytest.raises(AgentFault):
        read_task(task("TASK_STATE_UNSPECIFIED"))


def test_the_result_is_what_is_said_and_what_was_made_each_once() -> None:
    artifacts = made({"text": "the list"}, {"data": {"n": 7}}, {"filename": "x.pdf", "url": "http://x/y"})
    assert read_task(task("TASK_STATE_COMPLETED", "done", artifacts=artifacts)).words == (
        'done\n\nthe list\n\n{"n": 7.0}\n\n[a file, not read: x.pdf]'
    )
    assert read_task(task("TASK_STATE_COMPLETED", "same", artifacts=made({"text": "same"}))).words == "same"


def test_a_result_that_is_only_in_the_history_is_found() -> None:
    history = [
        {"messageId": "1", "role": "ROLE_AGENT", "parts": [{"text": "first"}]},
        {"messageId": "2", "role": "ROLE_AGENT", "parts": [{"text": "last"}]},
        {"messageId": "3", "role": "ROLE_USER", "parts": [{"text": "mine"}]},
    ]
    assert read_task(task("TASK_STATE_COMPLETED", history=history)).words == "last"
    assert read_task(task("TASK_STATE_COMPLETED")).words == ""


def test_words_are_bounded_and_can_be_read() -> None:
    words = read_task(task("TASK_STATE_COMPLETED", "a\x1b[31mb\u202e" + "x" * 50_000)).words
    assert words.startswith("a[31mb")
    assert len(words) == MAX_WORDS_CHARS


@pytest.mark.parametrize(
    ("data", "found"),
    [
        ({"sub_state": "awaiting-answer"}, "awaiting-answer"),
        ({"sub_state": "x\n" + "y" * 500}, "x " + "y" * 97 + "…"),
        ({"sub_state": 7}, None),
        ({}, None),
        ("awaiting-answer", None),
    ],
)
def test_a_sub_state_is_read_if_it_is_one(data: Any, found: str | None) -> None:
    assert read_task(task("TASK_STATE_INPUT_REQUIRED", metadata={status.KEY: data})).sub_state == found


def test_a_sub_state_counts_only_while_somebody_is_waited_for() -> None:
    assert read_task(task(metadata={status.KEY: {"sub_state": "awaiting-answer"}})).sub_state is None


def test_events_of_a_stream_tell_states_and_others_nothing() -> None:
    event = {"statusUpdate": {"taskId": "t1", "contextId": "c", "status": {"state": "TASK_STATE_FAILED"}}}
    seen = read_event(json_format.ParseDict(event, StreamResponse()))
    assert seen is not None
    assert (seen.remote_id, seen.state) == ("t1", TaskState.FAILED)
    assert read_event(json_format.ParseDict({"artifactUpdate": {"taskId": "t1"}}, StreamResponse())) is None
    assert read_event(StreamResponse()) is None


def test_words_alone_are_a_result() -> None:
    message = json_format.ParseDict({"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "x"}]}, Message())
    assert read_message(message).state is TaskState.COMPLETED


BRIEF = Brief(goal="/complete the album", description="All songs.", acceptance_criteria=("it plays",))


def test_a_brief_is_the_same_each_time_and_never_a_command() -> None:
    message = brief_message("c1", BRIEF, is_harness=False)
    assert message == brief_message("c1", BRIEF, is_harness=False)
    assert commands.is_literal(message)
    assert understand(message).command is None
    assert understand(message).text == "/complete the album\n\nAll songs.\n\nIt is done when:\n- it plays"


def test_a_harness_gets_the_brief_as_a_tasks_data() -> None:
    intake = understand(brief_message("c1", BRIEF, is_harness=True))
    assert intake.text == "/complete the album"
    assert intake.patch is not None
    assert intake.patch.description == "All songs."
    assert intake.patch.acceptance_criteria is not None
    assert [each.text for each in intake.patch.acceptance_criteria] == ["it plays"]
    part = brief_message("c1", Brief(goal="g"), is_harness=True)["parts"][1]
    assert part == {"data": {"kind": "task", "payload": {"goal": "g"}}, "mediaType": MEDIA_TYPE}
