"""What the protocol and its SDK leave to a gateway: versions, types, paths, card; and the official client."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from a2a.client import Client, ClientConfig, create_client
from a2a.helpers import new_text_message
from a2a.types import (
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    Role,
    SendMessageRequest,
    StreamResponse,
    SubscribeToTaskRequest,
    TaskState,
)
from a2a.utils import errors

from tests.integration.gateway.served import TOKEN, Caller, Gateway, words
from tiny_harness._version import __version__
from tiny_harness.errors import Unavailable
from tiny_harness.ext import commands, status, stream, supervision, task
from tiny_harness_gateway import event_stream

pytestmark = pytest.mark.timeout(60)


@pytest.mark.parametrize("method", ["SendMessage", "SendStreamingMessage", "GetTask", "SubscribeToTask", "ListTasks"])
@pytest.mark.parametrize("version", ["", "0.3", "1.7", "2.0"])
async def test_another_version_than_1_0_is_refused(ann: Caller, method: str, version: str) -> None:
    refused = await ann.call(method, {"message": words("x", "m"), "id": "t"}, **{"A2A-Version": version})
    assert refused.code in (-32009, 400)
    assert refused.info["reason"] == "VERSION_NOT_SUPPORTED"


async def test_a_missing_version_is_refused_and_the_query_may_name_it(gateway: Gateway) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}", "X-Participant-Id": "ann"}
    bare = await gateway.http.get(f"{gateway.url}/rest/tasks", headers=headers)
    assert bare.json()["error"]["details"][0]["reason"] == "VERSION_NOT_SUPPORTED"
    named = await gateway.http.get(f"{gateway.url}/rest/tasks?A2A-Version=1.0", headers=headers)
    assert named.status_code == 200
    body = {"message": words("hello", "m1")}
    sent = await gateway.http.post(f"{gateway.url}/rest/message:send?A2A-Version=1.0", json=body, headers=headers)
    assert sent.json()["task"]["history"]
    call = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": words("hello", "m2")}}
    called = await gateway.http.post(f"{gateway.url}/rpc?A2A-Version=1.0", json=call, headers=headers)
    assert called.json()["result"]["task"]["history"]


async def test_each_path_works_with_a_trailing_slash_and_an_unknown_one_is_json(gateway: Gateway) -> None:
    ann = gateway.caller()
    call = {"jsonrpc": "2.0", "id": 1, "method": "ListTasks"}
    assert (await gateway.http.post(f"{gateway.url}/rpc/", json=call, headers=ann.headers)).json()["result"]
    assert (await gateway.http.get(f"{gateway.url}/rest/tasks/", headers=ann.headers)).status_code == 200
    assert (await gateway.http.get(f"{gateway.url}/.well-known/agent-card.json/")).status_code in (200, 401)
    for path in ("/rest/nowhere", "/a/b/c", "/t/rest/tasks"):
        told = await gateway.http.get(gateway.url + path, headers=ann.headers)
        assert (told.status_code, told.json()["error"]["code"]) == (404, 404)
    wrong = await gateway.http.get(f"{gateway.url}/rpc", headers=ann.headers)
    assert (wrong.status_code, wrong.json()["error"]["code"]) == (405, 405)


@pytest.mark.parametrize(
    ("accept", "given"),
    [
        ("*/*", "application/json"),
        ("application/json", "application/json"),
        ("application/a2a+json", "application/a2a+json"),
    ],
)
async def test_rest_answers_in_the_type_that_the_client_accepts(gateway: Gateway, accept: str, given: str) -> None:
    headers = {**gateway.caller().headers, "Accept": accept}
    assert (await gateway.http.get(f"{gateway.url}/rest/tasks", headers=headers)).headers["content-type"] == given


async def test_push_is_refused_as_the_card_says(ann: Caller) -> None:
    push = await ann.call("CreateTaskPushNotificationConfig", {"taskId": "t", "url": "http://127.0.0.1/"})
    assert (push.code, push.info["reason"]) in [
        (-32003, "PUSH_NOTIFICATION_NOT_SUPPORTED"),
        (400, "PUSH_NOTIFICATION_NOT_SUPPORTED"),
    ]


async def test_the_extended_card_says_who_the_caller_is(gateway: Gateway, ann: Caller) -> None:
    card = (await gateway.http.get(f"{gateway.url}/.well-known/agent-card.json")).json()
    extended = (await ann.call("GetExtendedAgentCard")).result
    assert card["capabilities"]["extendedAgentCard"] is True
    [found] = [one for one in extended["capabilities"]["extensions"] if one["uri"] == task.URI]
    assert found.pop("params") == {"caller": {"id": "ann", "kind": "human"}}
    assert extended == card, "and nothing else is different"


async def test_the_card_tells_bindings_extensions_and_scheme_and_is_cached(gateway: Gateway) -> None:
    told = await gateway.http.get(f"{gateway.url}/.well-known/agent-card.json")
    card = told.json()
    assert card["version"] == __version__
    assert [(one["url"], one["protocolBinding"]) for one in card["supportedInterfaces"]][:2] == [
        (f"{gateway.url}/rpc", "JSONRPC"),
        (f"{gateway.url}/rest", "HTTP+JSON"),
    ]
    extensions = card["capabilities"]["extensions"]
    assert [one["uri"] for one in extensions] == [task.URI, status.URI, commands.URI, stream.URI, supervision.URI]
    assert not any(one.get("required") for one in extensions)
    assert card["capabilities"]["streaming"]
    assert "bearer" in card["securitySchemes"]
    assert "last-modified" in told.headers
    assert told.headers["cache-control"] == "public, max-age=60"
    known = {"If-None-Match": told.headers["etag"]}
    assert (await gateway.http.get(f"{gateway.url}/.well-known/agent-card.json", headers=known)).status_code == 304


async def test_health_says_what_does_not_answer(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (await gateway.http.get(f"{gateway.url}/healthz")).json() == {"status": "ok", "streams": "bus"}
    assert (await gateway.http.get(f"{gateway.url}/readyz")).json() == {"store": True, "temporal": True, "bus": True}

    async def down(_: Any) -> Any:
        raise Unavailable("the store is down")

    monkeypatch.setattr(gateway.store, "heads", down)
    told = await gateway.http.get(f"{gateway.url}/readyz")
    assert (told.status_code, told.json()) == (503, {"store": False, "temporal": True, "bus": True})


@asynccontextmanager
async def official(gateway: Gateway, binding: str, **options: Any) -> AsyncGenerator[Client]:
    """The official client with default settings: it knows nothing of ours but two HTTP headers."""
    headers = {"Authorization": f"Bearer {TOKEN}", "X-Participant-Id": "ann"}
    async with httpx.AsyncClient(headers=headers, **options) as http:
        config = ClientConfig(httpx_client=http, supported_protocol_bindings=[binding])
        async with await create_client(gateway.url, config) as client:
            yield client


async def say(client: Client, text: str, task_id: str = "") -> list[StreamResponse]:
    message = new_text_message(text, role=Role.ROLE_USER)
    message.task_id = task_id
    async with asyncio.timeout(40):
        return [event async for event in client.send_message(SendMessageRequest(message=message))]


def reply(events: list[StreamResponse]) -> str:
    return events[-1].status_update.status.message.parts[0].text


async def test_the_official_client_holds_a_conversation(gateway: Gateway, binding: str) -> None:
    async with official(gateway, binding) as client:
        first = await say(client, "hello")
        task_id = first[0].task.id
        assert reply(first) == "re: turn 1"
        assert reply(await say(client, "more", task_id)) == "re: turn 2"
        found = await client.get_task(GetTaskRequest(id=task_id, history_length=2))
        assert [message.parts[0].text for message in found.history] == ["more", "re: turn 2"]
        assert (await client.list_tasks(ListTasksRequest())).total_size == 1
        async with asyncio.timeout(20):
            events = client.subscribe(SubscribeToTaskRequest(id=task_id))
            assert (await anext(events)).task.id == task_id
            ended = await client.cancel_task(CancelTaskRequest(id=task_id))
            assert ended.status.state == TaskState.TASK_STATE_CANCELED
            rest = [event async for event in events]
        assert rest[-1].status_update.status.state == TaskState.TASK_STATE_CANCELED
        with pytest.raises(errors.TaskNotCancelableError):
            await client.cancel_task(CancelTaskRequest(id=task_id))
        with pytest.raises(errors.UnsupportedOperationError) as refused:
            await say(client, "too late", task_id)
        assert "CANCELED" in str(refused.value)
        with pytest.raises(errors.TaskNotFoundError):
            await client.get_task(GetTaskRequest(id="nowhere"))
        with pytest.raises(errors.InvalidParamsError):
            await say(client, " ")


async def test_the_official_client_outlives_a_silent_model(
    gateway: Gateway, binding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It gives a stream up after 5 s of silence: here at a fifth of that, with pings at a fifth of theirs."""
    monkeypatch.setattr(event_stream, "PING_INTERVAL_S", event_stream.PING_INTERVAL_S / 5)
    gateway.engine.hold()
    async with official(gateway, binding, timeout=5 / 5) as client:
        asking = asyncio.create_task(say(client, "hello"))
        asyncio.get_running_loop().call_later(20 / 5, gateway.engine.release)
        assert reply(await asking) == "re: turn 1"
