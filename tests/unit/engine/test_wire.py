"""The wire JSON of an event."""

import json
from datetime import UTC, datetime

from tiny_harness.contracts import TaskSnapshot
from tiny_harness.ext import status, stream, task
from tiny_harness.ext.task import TaskText
from tiny_harness.states import AWAITING_NEXT_MESSAGE, TaskState
from tiny_harness_engine.core.drafts import Draft
from tiny_harness_engine.core.wire import agent_message, render, render_delta

AT = datetime(2026, 1, 2, 3, 4, 5, 678_900, UTC)
PARKED = TaskSnapshot(task_id="t", context_id="c", state=TaskState.INPUT_REQUIRED, sub_state=AWAITING_NEXT_MESSAGE)
WORKING = TaskSnapshot(task_id="t", context_id="c", state=TaskState.WORKING)
TEXT = TaskText(name="Trip")


def test_a_reply_that_parks_carries_its_sub_state_in_the_status_metadata() -> None:
    draft = Draft(kind="reply", state=PARKED.state, sub_state=PARKED.sub_state, turn=1, step=1, in_reply_to=("m1",))
    payload = json.loads(render(draft, PARKED, TEXT, agent_message(PARKED, "r1", "hi"), 2, AT))
    assert payload == {
        "statusUpdate": {
            "taskId": "t",
            "contextId": "c",
            "status": {
                "state": "TASK_STATE_INPUT_REQUIRED",
                "timestamp": "2026-01-02T03:04:05.678Z",
                "message": {
                    "messageId": "r1",
                    "contextId": "c",
                    "taskId": "t",
                    "role": "ROLE_AGENT",
                    "parts": [{"text": "hi"}],
                },
            },
            "metadata": {
                stream.KEY: {"seq": 2, "turn": 1, "in_reply_to": ["m1"]},
                status.KEY: {"sub_state": "awaiting-next-message"},
            },
        }
    }


def test_a_state_other_than_input_required_carries_no_sub_state() -> None:
    payload = json.loads(render(Draft(kind="state", state=TaskState.CANCELED), WORKING, TEXT, None, 3, AT))
    assert status.KEY not in payload["statusUpdate"]["metadata"]


def test_a_first_event_is_the_task_with_its_message_and_data() -> None:
    message = {"messageId": "m1", "parts": [{"text": "ünï"}]}
    draft = Draft(
        kind="task", state=WORKING.state, turn=1, received=json.dumps(message), received_as="turn", tells_task=True
    )
    shown = json.loads(render(draft, WORKING, TEXT, None, 1, AT))["task"]
    assert shown["history"] == [message]
    assert shown["metadata"][stream.KEY] == {"seq": 1, "turn": 1, "received_as": "turn"}
    assert (shown["metadata"][task.KEY]["name"], shown["metadata"][task.KEY]["lifecycle"]) == ("Trip", "conversation")


def test_a_participants_message_is_in_the_extension_and_never_in_the_status() -> None:
    draft = Draft(kind="input", state=WORKING.state, received='{"messageId":"m2"}', received_as="queued")
    update = json.loads(render(draft, WORKING, TEXT, None, 2, AT))["statusUpdate"]
    assert "message" not in update["status"]
    assert update["metadata"] == {stream.KEY: {"seq": 2, "received_as": "queued", "received": {"messageId": "m2"}}}


def test_a_delta_has_no_number() -> None:
    delta = stream.Delta(message_id="r", turn=1, step=1, attempt=2, index=0, text="he")
    data = json.loads(render_delta("t", "c", delta))["statusUpdate"]["metadata"][stream.KEY]
    assert data == {"delta": delta.model_dump()}
