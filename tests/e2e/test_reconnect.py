"""Streams that are cut anywhere miss nothing and repeat nothing."""

import asyncio
from collections.abc import Iterable

import httpx
import pytest

from tests.served import Served, http_client
from tests.wire import Frame, Json, call, send, streamed, subscribed, subscribed_by_rpc, user_message
from tiny_harness.envelope import MEDIA_TYPE, control_part
from tiny_harness.ext.stream import KEY
from tiny_harness.ext.task import Role

TURNS = 50
PATIENCE_S = 60


def with_bob(role: Role = "watcher") -> Json:
    """The part that brings bob to a task."""
    people = [{"id": "bob", "role": role}]
    return {"data": {"kind": "task", "payload": {"participants": people}}, "mediaType": MEDIA_TYPE}


def answered(frames: Iterable[Frame]) -> list[str]:
    """The ids of the messages whose turns ended, in that order."""
    return [message_id for frame in frames for message_id in frame.data.in_reply_to]


async def follow_steadily(http: httpx.AsyncClient, task_id: str) -> list[Frame]:
    """Read a task from its first event to its end, in one stream."""
    async with subscribed_by_rpc(http, task_id, "0") as frames:
        return [frame async for frame in frames]


async def follow_by_single_events(http: httpx.AsyncClient, task_id: str) -> list[Frame]:
    """Read a task to its end, and reconnect after every single event."""
    seen: list[Frame] = []
    while not seen or seen[-1].state != "COMPLETED":
        async with subscribed(http, task_id, seen[-1].seq if seen else 0) as frames:
            seen.append(await anext(frames))
            await frames.aclose()
    return seen


async def test_a_reader_that_reconnects_at_every_event_sees_what_the_steady_one_sees(served: Served) -> None:
    async with http_client(served) as ann, http_client(served, "bob") as bob, asyncio.timeout(PATIENCE_S):
        task_id = (await send(ann, user_message("one", parts=[with_bob()])))["id"]
        async with asyncio.TaskGroup() as group:
            steady = group.create_task(follow_steadily(ann, task_id))
            hasty = group.create_task(follow_by_single_events(bob, task_id))
            for turn in range(1, TURNS):
                await send(ann, user_message(f"turn {turn}", task_id))
            await send(ann, user_message("", task_id, [control_part("complete")]))
        everything = steady.result()
        assert hasty.result() == everything
        # A task event, a reply; an input and a reply for each further turn; the end.
        assert [frame.seq for frame in everything] == list(range(1, 2 * TURNS + 2))
        for cursor in range(len(everything) + 1):
            async with subscribed(bob, task_id, cursor) as frames:
                assert [frame async for frame in frames] == everything[cursor:]


async def test_two_subscribers_without_a_cursor_see_the_same_events_in_the_same_order(served: Served) -> None:
    async with http_client(served) as ann, http_client(served, "bob") as bob, asyncio.timeout(PATIENCE_S):
        task_id = (await send(ann, user_message("one", parts=[with_bob()])))["id"]
        async with subscribed(ann, task_id) as hers, subscribed(bob, task_id) as his:
            first = [await anext(hers), await anext(his)]
            for turn in range(5):
                await send(ann, user_message(f"turn {turn}", task_id))
            await call(ann, "CancelTask", id=task_id)
            assert first[0] == first[1]
            assert "task" in first[0].payload
            seen = [frame async for frame in hers]
            assert [frame async for frame in his] == seen
        assert [frame.seq for frame in seen] == list(range(first[0].seq + 1, first[0].seq + 12))


@pytest.mark.parametrize("cursor", ["ahead", "999999999", "99999999999999999999", "-1", "1.0", "abc", "", "1,2", "٣"])
@pytest.mark.parametrize("ended", [False, True], ids=["open", "ended"])
async def test_a_cursor_that_is_malformed_or_ahead_of_the_task_is_refused(
    served: Served, cursor: str, ended: bool
) -> None:
    async with http_client(served) as ann, asyncio.timeout(PATIENCE_S):
        task_id = (await send(ann, user_message("one")))["id"]
        if ended:
            await send(ann, user_message("", task_id, [control_part("complete")]))
        value = cursor.replace("ahead", "4" if ended else "3").encode()
        body = {"jsonrpc": "2.0", "id": 1, "method": "SubscribeToTask", "params": {"id": task_id}}
        answer = await ann.post("/rpc", json=body, headers=[(b"Last-Event-ID", value)])
        error = answer.json()["error"]
        assert error["code"] == -32602
        assert error["data"][0]["metadata"] == {"code": "invalid_cursor", "field": "Last-Event-ID"}
        rest = await ann.get(f"/rest/tasks/{task_id}:subscribe", headers=[(b"Last-Event-ID", value)])
        assert rest.status_code == 400
        assert rest.json()["error"]["details"][0]["metadata"]["code"] == "invalid_cursor"


async def test_a_client_that_vanishes_in_the_middle_of_a_stream_changes_nothing(served: Served) -> None:
    async with http_client(served) as ann, asyncio.timeout(PATIENCE_S):
        async with http_client(served) as fleeting, streamed(fleeting, user_message("think for a second")) as frames:
            task_id = (await anext(frames)).body["id"]
            await frames.aclose()
        async with subscribed(ann, task_id, 1) as frames:
            assert (await anext(frames)).words == "I have thought."
            await frames.aclose()
        task = await send(ann, user_message("still there?", task_id))
        assert task["status"]["message"]["parts"] == [{"text": "2: still there?"}]


async def test_a_client_that_vanishes_during_a_blocking_send_changes_nothing(served: Served) -> None:
    message = user_message("think for a second")
    async with http_client(served) as ann, asyncio.timeout(PATIENCE_S):
        task_id = (await send(ann, user_message("one")))["id"]
        with pytest.raises(httpx.ReadTimeout):
            await ann.post(
                "/rest/message:send", json={"message": {**message, "taskId": task_id}}, timeout=httpx.Timeout(0.5)
            )
        async with subscribed(ann, task_id, 3) as frames:
            assert (await anext(frames)).words == "I have thought."
            await frames.aclose()
        task = await send(ann, user_message("still there?", task_id))
        assert task["status"]["message"]["parts"] == [{"text": "3: still there?"}]


async def test_a_message_during_a_turn_waits_and_its_send_ends_with_the_turn_that_reads_it(served: Served) -> None:
    async with http_client(served) as ann, http_client(served) as other, asyncio.timeout(PATIENCE_S):
        hanging = user_message("never answer")
        task_id = (await send(ann, hanging, at_once=True))["id"]
        queued = user_message("and this?", task_id)
        async with subscribed(other, task_id, 1) as frames, streamed(ann, queued) as turn:
            received = await anext(frames)
            assert (received.state, received.data.received_as) == ("WORKING", "queued")
            assert (await anext(turn)).body["status"]["state"] == "TASK_STATE_WORKING"
            await send(other, user_message("", task_id, [control_part("interrupt")]))
            cut, reply = await anext(frames), await anext(frames)
            await frames.aclose()
            assert [frame async for frame in turn] == [cut, reply]
        assert (cut.state, cut.data.in_reply_to) == ("WORKING", (hanging["messageId"],))
        assert (reply.state, reply.data.in_reply_to) == ("INPUT_REQUIRED", (queued["messageId"],))
        assert reply.words == "2: and this?"


async def test_two_clients_at_once_on_one_task_are_both_answered(served: Served) -> None:
    async with http_client(served) as ann, http_client(served, "bob") as bob, asyncio.timeout(PATIENCE_S):
        task_id = (await send(ann, user_message("one", parts=[with_bob("admin")])))["id"]
        sent = [(http, user_message(f"{index}", task_id)) for index in range(10) for http in (ann, bob)]
        tasks = await asyncio.gather(*(send(http, message) for http, message in sent))
        async with subscribed(ann, task_id, 0) as frames:
            seen = [await anext(frames)]
            while seen[-1].state != "INPUT_REQUIRED" or len(answered(seen)) < 1 + len(sent):
                seen.append(await anext(frames))
            await frames.aclose()
        assert sorted(answered(seen)[1:]) == sorted(message["messageId"] for _, message in sent)
        received = [frame.data.received["messageId"] for frame in seen if frame.data.received and frame.seq > 1]
        assert answered(seen)[1:] == received, "answered in another order than they came"
        # Each send came back with a task in which its message was read.
        for (_, message), task in zip(sent, tasks, strict=True):
            at = task["metadata"][KEY]["seq"]
            assert message["messageId"] in answered(frame for frame in seen if frame.seq <= at)


async def test_a_blocking_send_answers_after_the_turn_and_another_at_once(served: Served) -> None:
    async with http_client(served) as ann, asyncio.timeout(PATIENCE_S):
        done = await send(ann, user_message("think for a second"))
        assert done["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
        begun = await send(ann, user_message("think for a second", done["id"]), at_once=True)
        assert begun["status"]["state"] == "TASK_STATE_WORKING"
        queued = await send(ann, user_message("more", done["id"]))
        assert queued["status"]["message"]["parts"] == [{"text": "3: more"}]
