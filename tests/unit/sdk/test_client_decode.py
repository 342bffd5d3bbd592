"""A2A JSON as views and events: what we know, what we skip, what may be sloppy."""

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from tiny_harness.client import (
    CommandAnswer,
    CommandOffer,
    DeltaText,
    MessageView,
    Question,
    Received,
    Replied,
    StateChanged,
    Stepped,
    TaskShown,
    TaskView,
    fold,
)
from tiny_harness.client.decode import decode_event, decode_offers, decode_task
from tiny_harness.ext import commands, status, stream, supervision, task
from tiny_harness.ext.supervision import SupervisionData, marks
from tiny_harness.states import TaskState

ANN = {"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": "hello"}]}
AGENT = {"messageId": "a1", "role": "ROLE_AGENT", "parts": [{"text": "one"}, {"data": {}}, {"text": "two"}]}


def update(state: str, data: dict[str, Any], message: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    body: dict[str, Any] = {"state": state, "timestamp": "2026-01-02T03:04:05.678Z"}
    if message:
        body["message"] = message
    metadata = {stream.KEY: data, **more}
    return {"statusUpdate": {"taskId": "t", "contextId": "c", "status": body, "metadata": metadata}}


def test_a_task_event_shows_the_whole_task() -> None:
    people = [{"id": "ann", "kind": "human", "role": "reporter"}]
    event = decode_event(
        {
            "task": {
                "id": "t",
                "contextId": "c",
                "status": {"state": "TASK_STATE_WORKING", "timestamp": "2026-01-02T03:04:05.678Z"},
                "history": [ANN],
                "metadata": {task.KEY: {"name": "Hi", "participants": people, "plan": 3}, stream.KEY: {"seq": 1.0}},
            }
        }
    )
    assert isinstance(event, TaskShown)
    view = event.view
    assert (event.seq, view.task_id, view.context_id, view.name) == (1, "t", "c", "Hi")
    assert view.updated_at == datetime(2026, 1, 2, 3, 4, 5, 678_000, UTC)
    assert [message.text for message in view.messages] == ["hello"]
    assert [person.id for person in view.participants] == ["ann"]


def test_a_message_of_a_participant_is_received() -> None:
    event = decode_event(update("TASK_STATE_WORKING", {"seq": 2.0, "received": ANN, "received_as": "queued"}))
    assert isinstance(event, Received)
    assert (event.seq, event.received_as, event.message.role, event.message.text) == (2, "queued", "user", "hello")


def test_a_reply_ends_the_turn_of_the_messages_that_it_names() -> None:
    parked = {status.KEY: {"sub_state": "awaiting-next-message"}}
    event = decode_event(update("TASK_STATE_INPUT_REQUIRED", {"seq": 3, "in_reply_to": ["m1"]}, AGENT, **parked))
    assert isinstance(event, Replied)
    assert event.in_reply_to == ("m1",)
    assert (event.message.role, event.message.text) == ("agent", "one\n\ntwo")
    assert (event.state, event.sub_state) == (TaskState.INPUT_REQUIRED, "awaiting-next-message")


def test_a_control_changes_the_state_without_words() -> None:
    event = decode_event(update("TASK_STATE_COMPLETED", {"seq": 4, "received": ANN, "received_as": "control"}))
    assert isinstance(event, StateChanged)
    assert event.caused_by == "m1"


def test_a_change_of_data_tells_the_new_name() -> None:
    event = decode_event(update("TASK_STATE_WORKING", {"seq": 4, "received": ANN}, **{task.KEY: {"name": "New"}}))
    assert isinstance(event, Received)
    assert event.data is not None
    assert (event.data.name, event.received_as) == ("New", None)


def test_a_delta_is_read_although_its_numbers_are_doubles() -> None:
    delta = {"message_id": "a", "turn": 1.0, "step": 1.0, "attempt": 2.0, "index": 0.0, "text": "x"}
    event = decode_event(update("TASK_STATE_WORKING", {"delta": delta}))
    assert event == DeltaText(message_id="a", turn=1, step=1, attempt=2, index=0, text="x")


def test_what_is_not_known_is_skipped() -> None:
    assert decode_event({"artifactUpdate": {}}) is None
    assert decode_event({}) is None
    assert decode_event(update("TASK_STATE_DREAMING", {"seq": 1})) is None
    assert decode_event({"task": {"id": "t"}}) is None


def test_a_server_without_our_extensions_is_understood() -> None:
    body = {"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_INPUT_REQUIRED", "message": AGENT}}
    view = decode_task(body)
    assert view is not None
    assert (view.name, view.sub_state, view.updated_at) == ("", None, None)
    assert [message.message_id for message in view.messages] == ["a1"]


def test_malformed_data_of_our_extensions_reads_as_none() -> None:
    junk: dict[str, Any] = {stream.KEY: {"seq": "many"}, task.KEY: {"name": 7}, status.KEY: "odd"}
    body = {"id": "t", "status": {"state": "TASK_STATE_INPUT_REQUIRED", "timestamp": "?"}, "metadata": junk}
    event = decode_event(json.loads(json.dumps({"task": body})))
    assert isinstance(event, TaskShown)
    assert (event.seq, event.view.name, event.view.sub_state, event.view.updated_at) == (None, "", None, None)


def test_folding_an_event_twice_changes_nothing() -> None:
    view = TaskView("t", "c", TaskState.WORKING, name="Hi")
    event = decode_event(update("TASK_STATE_INPUT_REQUIRED", {"seq": 3, "in_reply_to": ["m1"]}, AGENT))
    assert event is not None
    once = fold(view, event)
    assert once is not None
    assert fold(once, event) == once
    assert [message.text for message in once.messages] == ["one\n\ntwo"]
    assert (once.name, once.state) == ("Hi", TaskState.INPUT_REQUIRED)


DONE = {commands.KEY: {"name": "status", "outcome": "done"}}


def test_the_reply_to_a_command_says_so_and_ends_no_turn() -> None:
    said = {"messageId": "r", "role": "ROLE_AGENT", "parts": [{"text": "Working"}, {"data": {"state": "x"}}]}
    event = decode_event(update("TASK_STATE_WORKING", {"seq": 5, "in_reply_to": ["m2"]}, said, **DONE))
    assert isinstance(event, Replied)
    assert event.message.command == CommandAnswer("status", "done", {"state": "x"})
    assert event.in_reply_to == ("m2",)
    assert not event.ends_turn
    plain = decode_event(update("TASK_STATE_INPUT_REQUIRED", {"seq": 5, "in_reply_to": ["m2"]}, said))
    assert isinstance(plain, Replied)
    assert plain.ends_turn


def test_a_message_of_the_history_says_that_it_answers_a_command() -> None:
    said = {**AGENT, "metadata": DONE}
    body = {"id": "t", "status": {"state": "TASK_STATE_WORKING"}, "history": [ANN, said]}
    view = decode_task(body)
    assert view is not None
    assert [message.command and message.command.name for message in view.messages] == [None, "status"]


def test_a_participant_cannot_speak_as_a_command() -> None:
    view = decode_task({"id": "t", "status": {"state": "TASK_STATE_WORKING"}, "history": [{**ANN, "metadata": DONE}]})
    assert view is not None
    assert view.messages[0].command is None


def test_malformed_data_of_a_command_reads_as_the_agents_words() -> None:
    for odd in ("odd", {"name": "status"}, {"name": "status", "outcome": "perhaps"}, {"literal": True}):
        event = decode_event(update("TASK_STATE_WORKING", {"seq": 5}, AGENT, **{commands.KEY: odd}))
        assert isinstance(event, Replied)
        assert event.message.command is None


def test_a_turn_that_a_policy_refused_names_the_messages() -> None:
    data = {"seq": 3, "in_reply_to": ["m1"], "refused": ["m1"]}
    event = decode_event(update("TASK_STATE_INPUT_REQUIRED", data, AGENT))
    assert isinstance(event, Replied)
    assert (event.refused, event.ends_turn) == (("m1",), True)


def test_a_task_tells_its_family_model_and_effort_and_a_change_tells_them_anew() -> None:
    child = {"task_id": "k", "state": "TASK_STATE_WORKING"}
    data = {"name": "Hi", "parent_tasks": ["p"], "sub_tasks": [child], "model": "big", "reasoning_effort": "high"}
    body = {"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_WORKING"}, "metadata": {task.KEY: data}}
    view = decode_task(body)
    assert view is not None
    assert (view.parent_tasks, view.model, view.effort) == (("p",), "big", "high")
    assert [(found.task_id, found.state) for found in view.sub_tasks] == [("k", "TASK_STATE_WORKING")]
    ended = {"name": "Hi", "sub_tasks": [{"task_id": "k", "state": "TASK_STATE_COMPLETED"}], "model": "small"}
    event = decode_event(update("TASK_STATE_WORKING", {"seq": 4}, **{task.KEY: ended}))
    assert event is not None
    after = fold(view, event)
    assert after is not None
    assert [found.state for found in after.sub_tasks] == ["TASK_STATE_COMPLETED"]
    assert (after.model, after.effort, after.parent_tasks) == ("small", "high", ("p",))


def test_one_malformed_field_of_a_task_leaves_the_others() -> None:
    data = {"name": "Hi", "sub_tasks": "many", "model": 7}
    view = decode_task({"id": "t", "status": {"state": "TASK_STATE_WORKING"}, "metadata": {task.KEY: data}})
    assert view is not None
    assert (view.name, view.sub_tasks, view.model) == ("Hi", (), None)


def test_offers_of_a_card_that_are_no_commands_are_left_out() -> None:
    entries = [{"name": "status", "description": "d"}, {"name": "Bad"}, {"name": "a b"}, {"description": "x"}, 7]
    assert decode_offers({"commands": entries}) == (CommandOffer(name="status", description="d"),)
    assert decode_offers({"commands": "many"}) == decode_offers({}) == ()


USES = [{"call_id": "c1", "name": "p/orders.look", "is_error": False}, {"call_id": "c2", "name": "x", "is_error": True}]
NOTE = {
    "messageId": "note:k:4",
    "role": "ROLE_AGENT",
    "parts": [{"text": "Sub-task k is COMPLETED."}],
    "metadata": {commands.KEY: {"literal": True}},
}


def test_a_step_tells_its_tools_and_words_and_is_no_reply() -> None:
    data = {"seq": 3.0, "turn": 1, "step": 1, "read": ["m1"], "tool_calls": USES}
    for message in (AGENT, None):
        event = decode_event(update("TASK_STATE_WORKING", data, message))
        assert isinstance(event, Stepped)
        assert [(use.name, use.is_error) for use in event.tool_calls] == [("p/orders.look", False), ("x", True)]
        assert (event.read, event.ends_turn, event.asks) == (("m1",), False, False)
        view = fold(TaskView("t", "c", TaskState.WORKING), event)
        assert view is not None
        assert [said.text for said in view.messages] == (["one\n\ntwo"] if message else [])


def test_a_note_for_the_agent_is_nobodys_words_in_an_event_and_in_a_history() -> None:
    event = decode_event(update("TASK_STATE_WORKING", {"seq": 4, "received": NOTE, "received_as": "turn"}))
    assert isinstance(event, Received)
    assert event.message == MessageView("note:k:4", "note", "Sub-task k is COMPLETED.")
    view = decode_task({"id": "t", "status": {"state": "TASK_STATE_WORKING"}, "history": [ANN, NOTE, AGENT]})
    assert view is not None
    assert [message.role for message in view.messages] == ["user", "note", "agent"]


def test_words_of_a_person_that_are_literal_stay_theirs() -> None:
    view = decode_task({"id": "t", "status": {"state": "TASK_STATE_WORKING"}, "history": [{**NOTE, **ANN}]})
    assert view is not None
    assert [message.role for message in view.messages] == ["user"]


def asking(sub_state: str = "awaiting-approval", **more: Any) -> dict[str, Any]:
    return {status.KEY: {"sub_state": sub_state, **more}}


MAY_I = asking(request_id="1.1.0", choices=["approve", "refuse"])
OPEN = Question("awaiting-approval", "one\n\ntwo", "1.1.0", ("approve", "refuse"))


def test_a_question_is_asked_stays_open_and_is_closed_by_whoever_answers() -> None:
    asked = decode_event(update("TASK_STATE_INPUT_REQUIRED", {"seq": 3, "in_reply_to": ["m1"]}, AGENT, **MAY_I))
    assert isinstance(asked, Replied)
    assert (asked.ends_turn, asked.asks) == (True, True)
    view = fold(TaskView("t", "c", TaskState.WORKING), asked)
    assert view is not None
    assert view.question == OPEN
    said = {"messageId": "r", "role": "ROLE_AGENT", "parts": [{"text": "Waiting"}]}
    parked = "TASK_STATE_INPUT_REQUIRED"
    reply = decode_event(update(parked, {"seq": 4, "in_reply_to": ["m2"]}, said, **DONE, **asking()))
    child = decode_event(update(parked, {"seq": 5}, **asking()))
    for event in (reply, child):
        assert event is not None
        view = fold(view, event)
        assert view is not None
        assert view.question == OPEN, "what is not about the question leaves it open"
    answer = decode_event(update("TASK_STATE_WORKING", {"seq": 6, "received": ANN, "received_as": "control"}))
    assert isinstance(answer, StateChanged)
    view = fold(view, answer)
    assert view is not None
    assert (view.question, view.sub_state) == (None, None)


def test_a_task_shows_its_question_also_when_others_have_spoken_since() -> None:
    parked = {"state": "TASK_STATE_INPUT_REQUIRED", "message": AGENT}
    view = decode_task({"id": "t", "status": parked, "history": [ANN], "metadata": MAY_I})
    assert view is not None
    assert view.question == OPEN
    said = {**AGENT, "messageId": "r", "parts": [{"text": "Waiting"}], "metadata": DONE}
    later = decode_task(
        {"id": "t", "status": {**parked, "message": said}, "history": [ANN, AGENT, NOTE], "metadata": MAY_I}
    )
    assert later is not None
    assert later.question == OPEN


@pytest.mark.parametrize(
    ("why", "question"),
    [
        (asking("awaiting-next-message"), None),
        (asking("awaiting-moonlight"), None),
        (asking("awaiting-moonlight", request_id="r"), Question("awaiting-moonlight", "one\n\ntwo", "r")),
        (asking("awaiting-answer", choices=["1", 2]), Question("awaiting-answer", "one\n\ntwo", None, ("1",))),
        (asking("awaiting-budget", request_id=7, choices="all"), Question("awaiting-budget", "one\n\ntwo")),
    ],
)
def test_what_a_task_waits_for_is_read_leniently(why: dict[str, Any], question: Question | None) -> None:
    event = decode_event(update("TASK_STATE_INPUT_REQUIRED", {"seq": 3, "in_reply_to": ["m1"]}, AGENT, **why))
    assert event is not None
    view = fold(None, event)
    shown = decode_task(
        {"id": "t", "status": {"state": "TASK_STATE_INPUT_REQUIRED", "message": AGENT}, "metadata": why}
    )
    assert view is not None
    assert shown is not None
    assert view.question == shown.question == question


def test_a_task_that_works_asks_nothing() -> None:
    event = decode_event(update("TASK_STATE_WORKING", {"seq": 3}, AGENT, **MAY_I))
    assert isinstance(event, Replied)
    assert (event.request_id, event.choices, event.asks) == (None, (), False)


def test_a_task_tells_its_plan_and_usage_and_a_change_tells_them_anew() -> None:
    plan = {"steps": [{"id": "a", "name": "Look", "status": "done", "output": "found"}]}
    usage = {"calls": 2.0, "input_tokens": 10.0, "output_tokens": 5.0, "cost": "0.12", "unpriced": ["big"]}
    metadata = {task.KEY: {"plan": plan, "usage": usage}}
    view = decode_task({"id": "t", "status": {"state": "TASK_STATE_WORKING"}, "metadata": metadata})
    assert view is not None
    assert view.plan is not None
    assert view.usage is not None
    assert [(step.status, step.output) for step in view.plan.steps] == [("done", "found")]
    assert (view.usage.calls, view.usage.cost, view.usage.unpriced) == (2, Decimal("0.12"), ("big",))
    later = {"plan": {"steps": [{"id": "b", "name": "Tell"}]}, "usage": {"calls": 3}}
    event = decode_event(update("TASK_STATE_WORKING", {"seq": 4, "tool_calls": USES}, **{task.KEY: later}))
    silent = decode_event(update("TASK_STATE_WORKING", {"seq": 5}, **{task.KEY: {"usage": {"calls": "many"}}}))
    assert event is not None
    assert silent is not None
    after = fold(fold(view, event), silent)
    assert after is not None
    assert after.plan is not None
    assert after.usage is not None
    assert ([step.name for step in after.plan.steps], after.usage.calls) == (["Tell"], 3)


def test_a_change_tells_how_a_task_stands_with_its_worker_and_keeps_who_acknowledged_it() -> None:
    def update(**facts: Any) -> dict[str, Any]:
        told = {supervision.KEY: {"worker": "bob", **facts}, stream.KEY: {"seq": 2}}
        return {"taskId": "t", "contextId": "c", "status": {"state": "TASK_STATE_WORKING"}, "metadata": told}

    known = SupervisionData(worker="bob", acknowledged=("ann",))
    view = TaskView(task_id="t", context_id="c", state=TaskState.SUBMITTED, supervision=known)
    event = decode_event({"statusUpdate": update(reminders=2, stalled=True)})
    assert event is not None
    after = fold(view, event)
    assert after is not None
    assert after.supervision == SupervisionData(worker="bob", acknowledged=("ann",), reminders=2, stalled=True)
    assert marks(after.supervision) == ("reminded 2 times", "stalled")
