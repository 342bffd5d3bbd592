"""The operations that answer once, on both bindings, by a real HTTP server."""

import asyncio
from collections.abc import AsyncGenerator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.integration.gateway.served import Caller, Gateway, envelope, running_gateway, words
from tiny_harness.errors import Unavailable
from tiny_harness.ext import status, stream, task
from tiny_harness.settings import Settings
from tiny_harness_gateway import conversations

pytestmark = pytest.mark.timeout(60)

Json = dict[str, Any]


def texts(found: Json) -> list[str]:
    return [message["parts"][0]["text"] for message in found.get("history", ())]


def state(found: Json) -> str:
    return found["status"]["state"].removeprefix("TASK_STATE_")


async def test_a_blocking_send_answers_the_task_after_its_turn(ann: Caller) -> None:
    found = (await ann.send("hello there", "m1")).result["task"]
    assert (state(found), texts(found)) == ("INPUT_REQUIRED", ["hello there", "re: turn 1"])
    assert found["metadata"][status.KEY] == {"sub_state": "awaiting-next-message"}
    assert found["metadata"][task.KEY]["name"] == "hello there"
    assert found["metadata"][stream.KEY]["seq"] == 2
    again = (await ann.send("more", "m2", found["id"])).result["task"]
    assert (again["id"], texts(again)[2:]) == (found["id"], ["more", "re: turn 2"])
    assert again["contextId"] == found["contextId"]


async def test_return_immediately_answers_before_the_turn_ends(ann: Caller, gateway: Gateway) -> None:
    gateway.engine.hold()
    at_once = {"configuration": {"returnImmediately": True}}
    found = (await ann.send("hello", "m1", **at_once)).result["task"]
    assert (state(found), texts(found)) == ("WORKING", ["hello"])
    assert status.KEY not in found["metadata"]


async def test_a_queued_message_follows_the_turn_that_reads_it(ann: Caller, gateway: Gateway) -> None:
    gateway.engine.hold()
    task_id = await ann.start()
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        waiting = group.create_task(ann.send("wait for me", "m2", task_id))
        async with ann.stream("SubscribeToTask", {"id": task_id}) as events:
            while not (seen := await events.next()).payload.get("statusUpdate"):
                continue
        assert seen.payload["statusUpdate"]["metadata"][stream.KEY]["received_as"] == "queued"
        gateway.engine.release()
    assert texts(waiting.result().result["task"]) == ["hello", "wait for me", "re: turn 1", "re: turn 2"]


async def test_a_blocking_send_that_waits_too_long_answers_the_task_as_it_stands(
    ann: Caller, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversations, "TURN_PATIENCE_S", 0.05)
    gateway.engine.hold()
    assert state((await ann.send("hello", "m1")).result["task"]) == "WORKING"


async def test_the_same_first_message_and_key_is_the_same_task(ann: Caller) -> None:
    message = {**words("hello", "m1"), "metadata": {stream.KEY: {"idempotency_key": "k"}}}
    first = (await ann.call("SendMessage", {"message": message})).result["task"]
    again = (await ann.call("SendMessage", {"message": message})).result["task"]
    assert (again["id"], texts(again)) == (first["id"], ["hello", "re: turn 1"])


async def test_a_repeat_to_an_ended_task_gets_its_first_answer(ann: Caller) -> None:
    task_id = await ann.start()
    await ann.send("more", "m2", task_id)
    await ann.call("CancelTask", {"id": task_id})
    assert state((await ann.send("more", "m2", task_id)).result["task"]) == "CANCELED"
    refused = await ann.send("other words", "m2", task_id)
    assert refused.info["metadata"]["code"] == "reused_message_id"


async def test_history_length_is_kept_within_bounds(ann: Caller) -> None:
    task_id = await ann.start()
    await ann.send("two", "m2", task_id)
    assert texts(await ann.task(task_id, historyLength=0)) == []
    assert texts(await ann.task(task_id, historyLength=3)) == ["re: turn 1", "two", "re: turn 2"]
    assert len(texts(await ann.task(task_id, historyLength=5000))) == 4
    refused = await ann.call("GetTask", {"id": task_id, "historyLength": -1})
    assert refused.info["metadata"] == {"code": "invalid_params", "field": "historyLength"}


async def test_history_is_found_behind_many_events_without_words(ann: Caller) -> None:
    task_id = await ann.start()
    for index in range(7):
        rename = envelope({"kind": "task", "payload": {"name": f"name {index}"}}, f"r{index}", task_id)
        await ann.call("SendMessage", {"message": rename})
    found = await ann.task(task_id, historyLength=2)
    assert texts(found) == ["hello", "re: turn 1"]
    assert found["metadata"][task.KEY]["name"] == "name 6"


async def test_lists_are_paged_newest_first_and_end_without_an_empty_page(ann: Caller) -> None:
    made = [(await ann.send("hi", f"m{index}")).result["task"]["id"] for index in range(6)]
    seen: list[str] = []
    token: Json = {}
    for _ in range(3):
        page = (await ann.call("ListTasks", {"pageSize": 2, **token})).result
        assert (len(page["tasks"]), page["totalSize"], page["pageSize"]) == (2, 6, 2)
        assert not any(found.get("history") for found in page["tasks"])
        seen += [found["id"] for found in page["tasks"]]
        token = {"pageToken": page.get("nextPageToken", "")}
    assert (seen, token) == (made[::-1], {"pageToken": ""})


async def test_lists_are_filtered_by_context_state_and_time(ann: Caller) -> None:
    first = (await ann.send("one", "m1")).result["task"]
    second = (await ann.send("two", "m2")).result["task"]
    await ann.call("CancelTask", {"id": second["id"]})
    after = first["status"]["timestamp"]

    async def ids(**filters: Any) -> list[str]:
        return [found["id"] for found in (await ann.call("ListTasks", filters)).result.get("tasks", ())]

    assert await ids(contextId=first["contextId"]) == [first["id"]]
    assert await ids(status="TASK_STATE_CANCELED") == [second["id"]]
    assert await ids(statusTimestampAfter=after) == [second["id"]]
    [listed] = (await ann.call("ListTasks", {"historyLength": 1, "status": "TASK_STATE_INPUT_REQUIRED"})).result[
        "tasks"
    ]
    assert texts(listed) == ["re: turn 1"]


@pytest.mark.parametrize(
    "params",
    [
        {"status": "TASK_STATE_ASLEEP"},
        {"pageSize": 0},
        {"pageSize": 101},
        {"pageToken": "nonsense"},
        {"pageToken": "MTIz"},
        {"statusTimestampAfter": "yesterday"},
    ],
)
async def test_a_list_with_a_bad_parameter_is_refused(ann: Caller, params: Json) -> None:
    refused = await ann.call("ListTasks", params)
    assert refused.code in (-32602, 400), refused.text


async def test_cancel_ends_a_parked_and_a_working_task_and_only_once(ann: Caller, gateway: Gateway) -> None:
    parked = (await ann.send("hello", "m1")).result["task"]["id"]
    gateway.engine.hold()
    working = await ann.start(message_id="m2")
    for task_id in (parked, working):
        assert state((await ann.call("CancelTask", {"id": task_id})).result) == "CANCELED"
        refused = await ann.call("CancelTask", {"id": task_id})
        assert refused.code in (-32002, 400)
        assert refused.info["reason"] == "TASK_NOT_CANCELABLE"
        assert refused.info["metadata"] == {"code": "task_ended", "state": "CANCELED"}


async def test_a_cancel_that_nobody_answers_is_503_and_stands(
    ann: Caller, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    task_id = await ann.start()
    monkeypatch.setattr(conversations, "CANCEL_PATIENCE_S", 0.05)
    gateway.engine.ignores_cancel = True
    told = await ann.call("CancelTask", {"id": task_id})
    assert (told.status, told.headers["retry-after"]) == (503, "2")
    assert "the cancel stands" in told.text
    gateway.engine.failure = Unavailable("Temporal is down")
    told = await ann.call("CancelTask", {"id": task_id})
    assert told.status == 503
    assert "the cancel stands" in told.text
    assert [found.task_id for found in await gateway.store.pending_cancels(timedelta())] == [task_id]


@pytest.mark.parametrize(("failure", "status_code"), [(Unavailable("down"), 503), (RuntimeError("secret words"), None)])
async def test_a_failing_engine_is_told_without_its_words(
    ann: Caller, gateway: Gateway, failure: Exception, status_code: int | None, caplog: pytest.LogCaptureFixture
) -> None:
    gateway.engine.failure = failure
    told = await ann.send("hello", "m1")
    assert "secret words" not in told.text
    if status_code:
        assert (told.status, told.headers["retry-after"]) == (503, "2")
        assert "same message id" in told.text
    else:
        assert told.code in (-32603, 500)
        assert "secret words" in caplog.text


async def test_complete_ends_a_task_and_the_next_message_is_refused_with_the_way_on(ann: Caller) -> None:
    task_id = await ann.start()
    complete = envelope({"kind": "control", "action": "complete"}, "c1", task_id)
    assert state((await ann.call("SendMessage", {"message": complete})).result["task"]) == "COMPLETED"
    for message in (words("more", "m2", task_id), envelope({"kind": "control", "action": "complete"}, "c2", task_id)):
        refused = await ann.call("SendMessage", {"message": message})
        assert refused.code in (-32004, 400)
        assert refused.info["metadata"] == {"code": "task_ended", "state": "COMPLETED"}
        assert "COMPLETED" in refused.body["error"]["message"]
    assert state((await ann.call("SendMessage", {"message": complete})).result["task"]) == "COMPLETED"


async def test_interrupt_cuts_the_turn_and_keeps_the_task(ann: Caller, gateway: Gateway) -> None:
    gateway.engine.hold()
    task_id = await ann.start()
    interrupt = envelope({"kind": "control", "action": "interrupt"}, "c1", task_id)
    assert state((await ann.call("SendMessage", {"message": interrupt})).result["task"]) == "INPUT_REQUIRED"
    again = {**interrupt, "messageId": "c2"}
    assert state((await ann.call("SendMessage", {"message": again})).result["task"]) == "INPUT_REQUIRED"


async def test_a_task_envelope_alone_starts_a_parked_task_with_its_name(ann: Caller, gateway: Gateway) -> None:
    start = envelope({"kind": "task", "payload": {"name": "Groceries"}}, "m1")
    found = (await ann.call("SendMessage", {"message": start})).result["task"]
    assert (state(found), found["metadata"][task.KEY]["name"]) == ("INPUT_REQUIRED", "Groceries")


async def test_the_context_is_filled_in_grants_nothing_and_must_match(ann: Caller, gateway: Gateway) -> None:
    first = (await ann.send("hello", "m1")).result["task"]
    same = {**words("again", "m2"), "contextId": first["contextId"]}
    second = (await ann.call("SendMessage", {"message": same})).result["task"]
    assert (second["contextId"], second["id"] != first["id"]) == (first["contextId"], True)
    bob = gateway.caller(ann.binding, "bob")
    foreign = (await bob.call("SendMessage", {"message": {**same, "messageId": "b1"}})).result["task"]
    assert foreign["contextId"] != first["contextId"]
    refused = await ann.call("SendMessage", {"message": {**words("x", "m3", first["id"]), "contextId": "other"}})
    assert refused.info["metadata"] == {"code": "invalid_params", "field": "message.contextId"}


async def test_an_agent_starts_a_delegated_task(gateway: Gateway, binding: str) -> None:
    agent = gateway.caller(binding, "robot", **{"X-Participant-Kind": "agent"})
    found = (await agent.send("do it", "m1")).result["task"]
    assert (state(found), found["metadata"][task.KEY]["lifecycle"]) == ("COMPLETED", "delegated")


@pytest.mark.parametrize(
    ("message", "code", "field"),
    [
        (words(" ", "m"), "empty_message", "message.parts"),
        ({"messageId": "m", "parts": []}, "empty_message", "message.parts"),
        ({"parts": [{"text": "x"}]}, "invalid_params", "message.messageId"),
        (envelope({"kind": "what"}, "m"), "invalid_envelope", "message.parts[0].data"),
        (
            envelope({"kind": "task", "payload": {"model": "big"}}, "m"),
            "invalid_envelope",
            "message.parts[0].data.payload.model",
        ),
        (envelope({"kind": "control", "action": "complete"}, "m"), "invalid_params", "message.taskId"),
        ({**words("x", "m"), "referenceTaskIds": ["t"] * 101}, "invalid_params", "message.referenceTaskIds"),
        (
            {**words("x", "m"), "metadata": {stream.KEY: {"idempotency_key": ""}}},
            "invalid_params",
            f"message.metadata.{stream.KEY}.idempotency_key",
        ),
    ],
)
@pytest.mark.parametrize("method", ["SendMessage", "SendStreamingMessage"])
async def test_a_malformed_message_is_refused_by_its_field(
    ann: Caller, gateway: Gateway, method: str, message: Json, code: str, field: str
) -> None:
    refused = await ann.call(method, {"message": message})
    assert refused.code in (-32602, 400)
    assert refused.info["metadata"] == {"code": code, "field": field}
    assert gateway.engine.deliveries == []


@pytest.mark.parametrize("method", ["SendMessage", "SendStreamingMessage"])
async def test_what_is_not_supported_is_refused_not_ignored(ann: Caller, gateway: Gateway, method: str) -> None:
    file = {"messageId": "m", "role": "ROLE_USER", "parts": [{"url": "file:///etc/passwd"}]}
    assert (await ann.call(method, {"message": file})).info["reason"] == "CONTENT_TYPE_NOT_SUPPORTED"
    tenant = await ann.call(method, {"message": words("x", "m"), "tenant": "t"})
    assert tenant.info["metadata"]["field"] == "tenant"
    push = {"configuration": {"taskPushNotificationConfig": {"url": "http://127.0.0.1/"}}}
    refused = await ann.call(method, {"message": words("x", "m"), **push})
    assert refused.info["reason"] == "PUSH_NOTIFICATION_NOT_SUPPORTED"
    assert gateway.engine.deliveries == []


async def test_a_nearly_full_disk_takes_no_messages_but_is_read(
    ann: Caller, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    task_id = await ann.start()
    monkeypatch.setattr(gateway.store, "free_bytes", lambda: 99_999_999)
    for method in ("SendMessage", "SendStreamingMessage"):
        assert (await ann.call(method, {"message": words("x", "m2", task_id)})).status == 507
    await ann.task(task_id)
    assert state((await ann.call("CancelTask", {"id": task_id})).result) == "CANCELED"


@pytest.fixture
async def delegating(settings: Settings, tmp_path: Path) -> AsyncGenerator[Gateway]:
    settings = Settings.model_validate({**settings.model_dump(), "tasks": {"default_lifecycle": "delegated"}})
    async with running_gateway(settings, tmp_path) as gateway:
        yield gateway


async def test_the_operator_chooses_what_a_first_message_starts(delegating: Gateway) -> None:
    found = (await delegating.caller().send("do it", "m1")).result["task"]
    assert state(found) == "COMPLETED"
