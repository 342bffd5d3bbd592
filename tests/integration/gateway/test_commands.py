"""Commands through the gateway: a send of one is answered by its reply and by nothing else, on both bindings."""

import asyncio
import itertools
import json
from typing import Any

import pytest

from tests.integration.gateway.served import Caller, Gateway, Sent, envelope, words
from tiny_harness.contracts import Child
from tiny_harness.errors import RefusedByPolicy, Unavailable, UnresolvedSubTasks
from tiny_harness.ext import commands, status, stream, task
from tiny_harness.states import TaskState
from tiny_harness.store import Commit, NewEvent
from tiny_harness_gateway import card

pytestmark = pytest.mark.timeout(60)

Json = dict[str, Any]


def texts(found: Json) -> list[str]:
    return [message["parts"][0]["text"] for message in found.get("history", ())]


def state(found: Json) -> str:
    return found["status"]["state"].removeprefix("TASK_STATE_")


def said(event: Sent) -> Json:
    """What stands under a status update's extension keys, and its words."""
    update = event.payload["statusUpdate"]
    data = update["metadata"].get(commands.KEY, {})
    words = update["status"].get("message", {"parts": [{"text": None}]})["parts"][0]["text"]
    return {"words": words, "replies": update["metadata"][stream.KEY].get("in_reply_to", []), **data}


async def test_a_blocking_send_of_a_command_answers_with_its_reply(ann: Caller, gateway: Gateway) -> None:
    task_id = await ann.start()
    found = (await ann.send("/fast", "c1", task_id)).result["task"]
    assert (state(found), texts(found)) == ("INPUT_REQUIRED", ["hello", "re: turn 1", "/fast", "/fast done"])
    assert found["metadata"][status.KEY] == {"sub_state": "awaiting-next-message"}
    assert (await gateway.snapshot(task_id)).turn == 1


async def test_a_command_is_answered_once_its_reply_is_out_whatever_temporal_tells(
    ann: Caller, gateway: Gateway
) -> None:
    task_id = await ann.start()
    gateway.engine.tells.clear()
    async with asyncio.timeout(30):
        found = (await ann.send("/fast", "c1", task_id)).result["task"]
        assert texts(found)[-2:] == ["/fast", "/fast done"]
        events = await ann.read("SendStreamingMessage", {"message": words("/fast", "c2", task_id)})
    assert [event.seq for event in events] == [5, 6]
    assert texts(events[0].payload["task"])[-1] == "/fast"
    assert said(events[1])["replies"] == ["c2"]
    await gateway.bus.until_watched(task_id, 0)


async def test_a_command_that_its_receipt_calls_answered_is_not_waited_for(
    ann: Caller, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object) -> None:
        raise Unavailable("nobody has to follow the task")

    monkeypatch.setattr(gateway.store, "events", fail)
    found = (await ann.send("/fast", "c1")).result["task"]
    assert texts(found) == ["/fast", "/fast done"]


async def test_a_blocking_send_waits_for_a_command_that_runs_elsewhere(ann: Caller, gateway: Gateway) -> None:
    task_id = await ann.start()
    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        sending = group.create_task(ann.send("/slow", "c1", task_id))
        async with ann.stream("SubscribeToTask", {"id": task_id}) as events:
            while "/slow" not in texts(await ann.task(task_id)):
                await events.next()
        gateway.engine.finish_commands()
    assert texts(sending.result().result["task"])[-2:] == ["/slow", "/slow done"]


async def test_a_command_as_a_first_message_is_answered_on_a_parked_task(ann: Caller, gateway: Gateway) -> None:
    found = (await ann.send("/fast", "c1")).result["task"]
    assert (state(found), texts(found)) == ("INPUT_REQUIRED", ["/fast", "/fast done"])
    assert (await gateway.snapshot(found["id"])).turn == 0
    again = (await ann.send("hello", "m2", found["id"])).result["task"]
    assert texts(again)[-1] == "re: turn 1"


@pytest.mark.parametrize("name", ["fast", "slow"])
async def test_a_first_command_streams_the_parked_task_and_ends_with_its_reply(
    ann: Caller, gateway: Gateway, name: str
) -> None:
    async with asyncio.timeout(30), ann.stream("SendStreamingMessage", {"message": words(f"/{name}", "c1")}) as events:
        first = await events.next()
        gateway.engine.finish_commands()
        rest = [event async for event in events]
    assert (first.state, first.payload["task"]["metadata"][stream.KEY]["received_as"]) == ("INPUT_REQUIRED", "command")
    assert [event.state for event in rest] == ["INPUT_REQUIRED"]
    assert said(rest[0]) == {"words": f"/{name} done", "replies": ["c1"], "name": name, "outcome": "done"}


async def test_a_commands_stream_ends_with_its_reply_and_not_with_a_turn(ann: Caller, gateway: Gateway) -> None:
    gateway.engine.hold()
    task_id = await ann.start()
    async with (
        asyncio.timeout(30),
        ann.stream("SendStreamingMessage", {"message": words("/slow", "c1", task_id)}) as events,
    ):
        assert (await events.next()).state == "WORKING"
        gateway.engine.release()
        turn_end = await events.next()
        gateway.engine.finish_commands()
        rest = [event async for event in events]
    assert (turn_end.state, said(turn_end)["words"]) == ("INPUT_REQUIRED", "re: turn 1")
    assert [said(event)["replies"] for event in rest] == [["c1"]]


async def test_a_commands_reply_in_the_middle_of_a_turn_is_not_its_end(ann: Caller, gateway: Gateway) -> None:
    gateway.engine.hold()
    task_id = await ann.start()
    async with (
        asyncio.timeout(30),
        ann.stream("SendStreamingMessage", {"message": words("and this", "m2", task_id)}) as events,
        asyncio.TaskGroup() as group,
    ):
        await events.next()
        waiting = group.create_task(ann.send("and that", "m3", task_id))
        while (await gateway.snapshot(task_id)).mailbox[-1].message_id != "m3":
            await events.next()
        during = (await ann.send("/fast", "c1", task_id)).result["task"]
        gateway.engine.release()
        rest = [event async for event in events]
    assert (state(during), texts(during)[-2:]) == ("WORKING", ["/fast", "/fast done"])
    replies = [said(event) for event in rest if said(event)["words"]]
    assert [reply["replies"] for reply in replies] == [["c1"], ["m1"], ["m2", "m3"]]
    assert texts(waiting.result().result["task"])[-1] == "re: turn 2"


async def test_a_repeated_command_gets_its_first_reply(ann: Caller, gateway: Gateway) -> None:
    task_id = await ann.start()
    for _ in range(2):
        found = (await ann.send("/fast", "c1", task_id)).result["task"]
        assert texts(found)[2:] == ["/fast", "/fast done"]
    events = await ann.read("SendStreamingMessage", {"message": words("/fast", "c1", task_id)})
    assert said(events[-1])["replies"] == ["c1"]
    await ann.call("CancelTask", {"id": task_id})
    assert state((await ann.send("/fast", "c1", task_id)).result["task"]) == "CANCELED"
    late = await ann.send("/fast", "c2", task_id)
    assert late.info["metadata"]["code"] == "task_ended"


async def test_a_send_of_a_command_ends_with_its_task(ann: Caller, gateway: Gateway) -> None:
    task_id = await ann.start()
    async with (
        asyncio.timeout(30),
        ann.stream("SendStreamingMessage", {"message": words("/slow", "c1", task_id)}) as events,
    ):
        await events.next()
        await ann.call("CancelTask", {"id": task_id})
        assert [event.state async for event in events] == ["CANCELED"]


async def test_a_watcher_may_send_what_looks_like_a_command_and_no_words(gateway: Gateway, binding: str) -> None:
    ann, bob, eve = (gateway.caller(binding, name) for name in ("ann", "bob", "eve"))
    task_id = await ann.start()
    watcher = {"kind": "task", "payload": {"participants": [{"id": "bob", "role": "watcher"}]}}
    await ann.call("SendMessage", {"message": envelope(watcher, "e1", task_id)})
    assert texts((await bob.send("/fast", "c1", task_id)).result["task"])[-1] == "/fast done"
    refused = await bob.send("hello", "m2", task_id)
    assert refused.info["metadata"] == {"code": "role_not_permitted", "role": "watcher"}
    stop = await bob.call("SendMessage", {"message": envelope({"kind": "control", "action": "complete"}, "x", task_id)})
    assert stop.info["metadata"]["code"] == "role_not_permitted"
    stranger = await eve.send("/fast", "c2", task_id)
    assert stranger.code in (-32001, 404)


async def test_a_task_shows_what_was_chosen_for_it_and_its_family(ann: Caller, gateway: Gateway) -> None:
    task_id = await ann.start()
    record = await gateway.store.task(task_id)
    assert record
    before = (await ann.task(task_id))["metadata"][task.KEY]
    assert not {"model", "reasoning_effort"} & set(before)
    child = Child(task_id="k", state=TaskState.WORKING)
    chosen = {"model": "big", "effort": "high", "parent": "p", "children": (child,)}
    event = (await gateway.store.events(task_id, record.snapshot.head - 1, 1))[0]
    await gateway.store.commit(
        Commit(
            task_id,
            "m:x",
            record.snapshot.head,
            [NewEvent("state", lambda *_: event.payload)],
            record.snapshot.model_copy(update=chosen),
            "",
        )
    )
    after = (await ann.task(task_id))["metadata"][task.KEY]
    assert (after["model"], after["reasoning_effort"], after["parent_tasks"]) == ("big", "high", ["p"])
    assert after["sub_tasks"] == [{"task_id": "k", "state": "TASK_STATE_WORKING"}]
    assert after["name"] == before["name"]


def params(shown: Json) -> list[Json]:
    [extension] = [one for one in shown["capabilities"]["extensions"] if one["uri"] == commands.URI]
    return extension["params"]["commands"]


async def test_the_card_lists_the_commands_of_the_current_catalogue(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"{gateway.url}/.well-known/agent-card.json"
    monkeypatch.setattr(card, "CATALOGUE_AGE_S", 0.0)
    empty = await gateway.http.get(url)
    assert params(empty.json()) == []
    deploy = {"name": "deploy", "description": "Déploie", "argument_hint": "<env>"}
    await gateway.store.save_catalogue("one", json.dumps({"build": "1", "commands": [deploy]}))
    full = await gateway.http.get(url)
    assert params(full.json()) == [deploy]
    assert full.headers["etag"] != empty.headers["etag"]
    known = {"If-None-Match": full.headers["etag"]}
    assert (await gateway.http.get(url, headers=known)).status_code == 304
    await gateway.store.save_catalogue("two", json.dumps({"commands": []}))
    changed = await gateway.http.get(url, headers=known)
    assert (changed.status_code, params(changed.json())) == (200, [])
    assert changed.headers["etag"] == empty.headers["etag"]


async def test_the_card_asks_the_store_seldom_and_lives_without_it(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, asked = f"{gateway.url}/.well-known/agent-card.json", 0

    async def away() -> None:
        nonlocal asked
        asked += 1
        raise Unavailable("planted")

    monkeypatch.setattr(gateway.store, "current_catalogue", away)
    monkeypatch.setattr(card, "CATALOGUE_AGE_S", 3600.0)
    for _ in range(5):
        assert (await gateway.http.get(url)).status_code == 200
    assert asked <= 1


async def test_the_monitor_shows_engines_and_their_hooks_to_who_is_known(gateway: Gateway) -> None:
    url, ann = f"{gateway.url}/_monitor", gateway.caller()
    assert (await gateway.http.get(url)).status_code == 401
    assert (await gateway.http.get(url, headers={**ann.headers, "Host": "evil.example"})).status_code == 403
    told = await gateway.http.get(url, headers=ann.headers)
    assert (told.status_code, told.json()) == (200, {"catalogue": None, "heartbeat": None, "push": {}, "engines": []})
    await gateway.store.save_catalogue("one", "{}")
    await gateway.store.report_engine("e1", "one", '{"hooks":[{"name":"policy","state":"down"}]}')
    shown = await gateway.http.get(url, headers=ann.headers)
    [engine] = shown.json()["engines"]
    assert (shown.status_code, shown.json()["catalogue"]) == (200, "one")
    assert (engine["engine_id"], engine["digest"]) == ("e1", "one")
    assert engine["health"] == {"hooks": [{"name": "policy", "state": "down"}]}
    assert 0 <= engine["age_s"] < 60


async def test_the_monitor_says_when_the_store_is_away(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    async def away(_within: object) -> None:
        raise Unavailable("planted")

    monkeypatch.setattr(gateway.store, "engines", away)
    told = await gateway.http.get(f"{gateway.url}/_monitor", headers=gateway.caller().headers)
    assert (told.status_code, told.json()["error"]["status"]) == (503, "UNAVAILABLE")


@pytest.mark.parametrize(
    ("failure", "metadata"),
    [
        (RefusedByPolicy("no secrets"), {"code": "refused_by_policy", "reason": "no secrets"}),
        (UnresolvedSubTasks("t", ("a", "b")), {"code": "unresolved_sub_tasks", "ids": "a,b"}),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_a_refusal_of_the_engine_is_told_with_its_data(
    ann: Caller, gateway: Gateway, failure: Exception, metadata: dict[str, str]
) -> None:
    task_id = await ann.start()
    gateway.engine.failure = failure
    for method, text in itertools.product(("SendMessage", "SendStreamingMessage"), ("hello", "/fast")):
        refused = await ann.call(method, {"message": words(text, "m2", task_id)})
        assert refused.code in (-32004, 400)
        assert refused.info["metadata"] == metadata
