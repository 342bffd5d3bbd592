"""Who may do what to a task: over all of A2A's operations and both bindings (DESIGN: security)."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from a2a.server.routes.jsonrpc_dispatcher import JsonRpcDispatcher

from tests.integration.gateway.served import BINDINGS, Caller, Gateway, Told, envelope, running_gateway, words
from tiny_harness.errors import RoleNotPermitted
from tiny_harness.settings import Settings

pytestmark = pytest.mark.timeout(60)

Json = dict[str, Any]

ABOUT_A_TASK: dict[str, Any] = {
    "SendMessage": lambda task_id: {"message": words("psst", "x", task_id)},
    "SendStreamingMessage": lambda task_id: {"message": words("psst", "x", task_id)},
    "GetTask": lambda task_id: {"id": task_id},
    "CancelTask": lambda task_id: {"id": task_id},
    "SubscribeToTask": lambda task_id: {"id": task_id},
    "CreateTaskPushNotificationConfig": lambda task_id: {"taskId": task_id, "url": "http://127.0.0.1/"},
    "GetTaskPushNotificationConfig": lambda task_id: {"taskId": task_id, "id": "p"},
    "ListTaskPushNotificationConfigs": lambda task_id: {"taskId": task_id},
    "DeleteTaskPushNotificationConfig": lambda task_id: {"taskId": task_id, "id": "p"},
}
"""Every operation that names a task, with parameters for one."""

NOT_ABOUT_A_TASK = {"ListTasks", "GetExtendedAgentCard"}

CONTROLS: dict[str, Any] = {
    action: lambda task_id, action=action: {
        "message": envelope({"kind": "control", "action": action}, f"c-{action}", task_id)
    }
    for action in ("complete", "interrupt")
}


@pytest.fixture(scope="module")
async def gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Gateway]:
    folder: Path = tmp_path_factory.mktemp("gateway")
    settings = Settings.model_validate({"store": {"sqlite_path": folder / "store.db"}})
    async with running_gateway(settings, folder) as gateway:
        yield gateway


@pytest.fixture(scope="module")
async def task_id(gateway: Gateway) -> str:
    """A parked task of Ann's, with Wanda watching and Rob reporting."""
    people = [{"id": "wanda", "role": "watcher"}, {"id": "rob", "role": "reporter"}, {"id": "ada", "role": "admin"}]
    data = {"kind": "task", "payload": {"participants": [*people, {"id": "al", "role": "assignee"}]}}
    start = envelope(data, "start")
    return (await gateway.caller().call("SendMessage", {"message": start})).result["task"]["id"]


def test_every_operation_of_the_protocol_is_tested_here() -> None:
    assert set(ABOUT_A_TASK) | NOT_ABOUT_A_TASK == set(JsonRpcDispatcher.METHOD_TO_MODEL)


@pytest.mark.parametrize("binding", BINDINGS)
@pytest.mark.parametrize("method", ABOUT_A_TASK)
async def test_a_foreign_task_looks_like_a_missing_one(
    gateway: Gateway, task_id: str, method: str, binding: str
) -> None:
    eve = gateway.caller(binding, "eve")
    missing_id = task_id[:-1] + ("0" if task_id[-1] != "0" else "1")
    foreign, missing = [await eve.call(method, ABOUT_A_TASK[method](name)) for name in (task_id, missing_id)]
    assert (foreign.status, foreign.text.replace(task_id, missing_id)) == (missing.status, missing.text)
    if "Push" not in method:
        assert (foreign.code, foreign.info["reason"]) in [(-32001, "TASK_NOT_FOUND"), (404, "TASK_NOT_FOUND")]
    assert await _is_untouched(gateway, task_id)


@pytest.mark.parametrize("binding", BINDINGS)
@pytest.mark.parametrize("action", CONTROLS)
async def test_a_control_of_a_foreign_task_looks_like_one_of_a_missing_one(
    gateway: Gateway, task_id: str, action: str, binding: str
) -> None:
    for name in (task_id, "missing"):
        refused = await gateway.caller(binding, "eve").call("SendMessage", CONTROLS[action](name))
        assert refused.info["reason"] == "TASK_NOT_FOUND"
    assert await _is_untouched(gateway, task_id)


@pytest.mark.parametrize("binding", BINDINGS)
async def test_a_foreign_task_is_not_listed_nor_referred_to(gateway: Gateway, task_id: str, binding: str) -> None:
    eve = gateway.caller(binding, "eve")
    listed = (await eve.call("ListTasks")).result
    assert (listed.get("tasks", []), listed.get("totalSize", 0)) == ([], 0)
    refer = {"message": {**words("like that one", "x"), "referenceTaskIds": [task_id]}}
    assert (await eve.call("SendMessage", refer)).info["reason"] == "TASK_NOT_FOUND"


@pytest.mark.parametrize("binding", BINDINGS)
@pytest.mark.parametrize("cursor", ["0", "1", "999"])
async def test_a_cursor_opens_no_foreign_task(gateway: Gateway, task_id: str, cursor: str, binding: str) -> None:
    eve = gateway.caller(binding, "eve", **{"Last-Event-ID": cursor})
    assert (await eve.call("SubscribeToTask", {"id": task_id})).info["reason"] == "TASK_NOT_FOUND"


@pytest.mark.parametrize("binding", BINDINGS)
async def test_a_watcher_reads_and_does_nothing_else(gateway: Gateway, task_id: str, binding: str) -> None:
    wanda = gateway.caller(binding, "wanda")
    assert (await wanda.task(task_id))["id"] == task_id
    assert (await wanda.call("ListTasks")).result["totalSize"] == 1
    async with wanda.stream("SubscribeToTask", {"id": task_id}) as events:
        assert (await events.next()).payload["task"]["id"] == task_id
    acts = {**ABOUT_A_TASK, **CONTROLS}
    for act in ("SendMessage", "SendStreamingMessage", "CancelTask", *CONTROLS):
        refused = await wanda.call(act if act in ABOUT_A_TASK else "SendMessage", acts[act](task_id))
        assert refused.code in (-32004, 400)
        assert refused.info["metadata"] == {"code": "role_not_permitted", "role": "watcher"}
    malformed = {"message": {"messageId": "", "taskId": task_id}}
    assert (await wanda.call("SendMessage", malformed)).info["metadata"]["code"] == "role_not_permitted"
    assert await _is_untouched(gateway, task_id)


@pytest.mark.parametrize("name", ["ann", "rob", "ada", "al"])
async def test_the_other_roles_talk_and_control(gateway: Gateway, name: str) -> None:
    people = [{"id": "rob", "role": "reporter"}, {"id": "ada", "role": "admin"}, {"id": "al", "role": "assignee"}]
    start = envelope({"kind": "task", "payload": {"participants": people}}, f"start-{name}")
    task_id = (await gateway.caller().call("SendMessage", {"message": start})).result["task"]["id"]
    caller = gateway.caller("HTTP+JSON", name)
    assert (await caller.send("hello", "m", task_id)).result["task"]["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    for action in ("interrupt", "complete"):
        await _done(caller, CONTROLS[action](task_id))
    assert (await caller.task(task_id))["status"]["state"] == "TASK_STATE_COMPLETED"


@pytest.mark.parametrize(("name", "may"), [("ann", True), ("rob", True), ("ada", True), ("al", False)])
async def test_only_admins_and_reporters_change_participants(
    gateway: Gateway, task_id: str, name: str, may: bool
) -> None:
    data = {"kind": "task", "payload": {"participants": [{"id": f"friend-of-{name}", "role": "watcher"}]}}
    told = await gateway.caller(name=name).call("SendMessage", {"message": envelope(data, f"p-{name}", task_id)})
    friend = gateway.caller(name=f"friend-of-{name}")
    if may:
        assert told.result
        assert (await friend.task(task_id))["id"] == task_id
    else:
        assert told.info["metadata"] == {"code": "role_not_permitted", "role": "assignee"}
        assert (await friend.call("GetTask", {"id": task_id})).code == -32001


async def test_nobody_speaks_as_the_agent_or_under_a_malformed_name(gateway: Gateway, task_id: str) -> None:
    for name in ("tiny-harness", "a b", "x" * 129, "ann\tadmin", "ann,rob"):
        told = await gateway.caller(name=name).call("GetTask", {"id": task_id})
        assert (told.status, told.headers["www-authenticate"]) == (401, "Bearer"), name
    assert (await gateway.caller(**{"X-Participant-Kind": "god"}).call("ListTasks")).status == 401


async def test_an_engine_that_finds_another_role_is_believed(gateway: Gateway, task_id: str) -> None:
    """The workflow checks again under its lock: what it refuses reaches the caller as the same error."""
    gateway.engine.failure = RoleNotPermitted("watcher", "send a message")
    try:
        refused = await gateway.caller().send("hello", "again", task_id)
    finally:
        gateway.engine.failure = None
    assert refused.info["metadata"] == {"code": "role_not_permitted", "role": "watcher"}


async def _done(caller: Caller, params: Json) -> Told:
    told = await caller.call("SendMessage", params)
    assert told.result
    return told


async def _is_untouched(gateway: Gateway, task_id: str) -> bool:
    events = await gateway.store.events(task_id, 0, 100)
    return not any("psst" in event.payload for event in events) and not (await gateway.snapshot(task_id)).turn
