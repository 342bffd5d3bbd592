"""The two streaming operations, on both bindings, by a real HTTP server."""

import asyncio
import json
import socket
from pathlib import Path

import pytest

from tests.integration.gateway.served import Caller, Gateway, Sent, envelope, running_gateway, words
from tiny_harness.bus import Frame
from tiny_harness.ext import stream
from tiny_harness.settings import Settings
from tiny_harness.store import Commit, NewEvent
from tiny_harness_gateway import event_stream, limits

pytestmark = pytest.mark.timeout(60)

DELTAS = {"A2A-Extensions": stream.URI}


def numbers(events: list[Sent]) -> list[int | None]:
    return [event.id for event in events]


def states(events: list[Sent]) -> list[str]:
    return [event.state for event in events]


async def test_a_first_message_streams_the_stored_task_and_ends_with_its_turn(ann: Caller, gateway: Gateway) -> None:
    events = await ann.read("SendStreamingMessage", {"message": words("hello", "m1")})
    assert (numbers(events), states(events)) == ([1, 2], ["WORKING", "INPUT_REQUIRED"])
    task_id = events[0].payload["task"]["id"]
    stored = [event.payload for event in await gateway.store.events(task_id, 0, 10)]
    wire = [event.raw if ann.binding != "JSONRPC" else json.dumps(event.payload) for event in events]
    assert [json.loads(payload) for payload in stored] == [event.payload for event in events]
    if ann.binding == "HTTP+JSON":
        assert wire == stored


async def test_a_follow_up_streams_the_task_as_of_its_message_and_then_its_turn(ann: Caller) -> None:
    task_id = await ann.start()
    events = await ann.read("SendStreamingMessage", {"message": words("more", "m2", task_id)})
    assert (numbers(events), states(events)) == ([3, 4], ["WORKING", "INPUT_REQUIRED"])
    assert [event.seq for event in events] == [3, 4]
    assert [message["messageId"] for message in events[0].payload["task"]["history"]][-1] == "m2"


async def test_a_stream_of_a_queued_message_goes_on_until_the_turn_that_reads_it(ann: Caller, gateway: Gateway) -> None:
    gateway.engine.hold()
    task_id = await ann.start()
    async with (
        asyncio.timeout(20),
        ann.stream("SendStreamingMessage", {"message": words("w", "m2", task_id)}) as events,
    ):
        first = await events.next()
        gateway.engine.release()
        rest = [event async for event in events]
    assert (numbers([first, *rest]), states([first, *rest])) == ([2, 3, 4], ["WORKING", "WORKING", "INPUT_REQUIRED"])


async def test_a_control_ends_its_stream_as_soon_as_it_took_effect(ann: Caller, gateway: Gateway) -> None:
    gateway.engine.hold()
    task_id = await ann.start()
    complete = envelope({"kind": "control", "action": "complete"}, "c1", task_id)
    events = await ann.read("SendStreamingMessage", {"message": complete})
    assert (numbers(events), states(events)) == ([2], ["COMPLETED"])


async def test_a_subscription_sends_the_task_first_and_stays_open_until_the_task_ends(ann: Caller) -> None:
    task_id = await ann.start()
    async with asyncio.timeout(20), ann.stream("SubscribeToTask", {"id": task_id}) as events:
        first = await events.next()
        assert (first.payload["task"]["id"], first.id, first.seq) == (task_id, 2, 2)
        await ann.send("more", "m2", task_id)
        await ann.call("CancelTask", {"id": task_id})
        rest = [event async for event in events]
    assert (numbers(rest), states(rest)) == ([3, 4, 5], ["WORKING", "INPUT_REQUIRED", "CANCELED"])
    assert len(events.retries) == 1
    assert 500 <= events.retries[0] <= 5000


async def test_a_reconnect_at_every_event_misses_and_repeats_none(ann: Caller) -> None:
    task_id = await ann.start()
    for turn in range(2, 6):
        await ann.send("more", f"m{turn}", task_id)
    await ann.call("CancelTask", {"id": task_id})
    for cursor in range(12):
        events = await ann.read("SubscribeToTask", {"id": task_id}, **{"Last-Event-ID": str(cursor)})
        assert numbers(events) == list(range(cursor + 1, 12))
        assert [event.seq for event in events] == numbers(events)


async def test_a_reader_that_reconnects_while_a_conversation_runs_sees_what_another_sees(ann: Caller) -> None:
    task_id = await ann.start()

    async def watch() -> list[int | None]:
        return numbers(await ann.read("SubscribeToTask", {"id": task_id}, **{"Last-Event-ID": "0"}))

    async def hop() -> list[int | None]:
        seen: list[int | None] = [0]
        while True:
            async with ann.stream("SubscribeToTask", {"id": task_id}, **{"Last-Event-ID": str(seen[-1])}) as events:
                event = await anext(aiter(events), None)  # one event per connection
            if event is None:
                return seen[1:]
            seen.append(event.id)

    async with asyncio.timeout(50), asyncio.TaskGroup() as group:
        watching = group.create_task(watch())
        hopping = group.create_task(hop())
        for turn in range(2, 12):
            await ann.send("more", f"m{turn}", task_id)
        await ann.call("CancelTask", {"id": task_id})
    assert watching.result() == hopping.result() == list(range(1, 24))


async def test_two_subscribers_see_the_same_bytes_in_the_same_order(ann: Caller, gateway: Gateway) -> None:
    task_id = await ann.start()
    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        readers = [
            group.create_task(ann.read("SubscribeToTask", {"id": task_id}, **{"Last-Event-ID": "2"})) for _ in range(2)
        ]
        for turn in range(2, 8):
            await ann.send("more", f"m{turn}", task_id)
        await ann.call("CancelTask", {"id": task_id})
    first, second = ([event.raw for event in reader.result()] for reader in readers)
    assert first == second
    assert len(first) == 13


async def test_a_subscription_to_an_ended_task_needs_a_cursor(ann: Caller) -> None:
    task_id = await ann.start()
    await ann.call("CancelTask", {"id": task_id})
    refused = await ann.call("SubscribeToTask", {"id": task_id})
    assert refused.code in (-32004, 400)
    assert refused.info["metadata"] == {"code": "task_ended", "state": "CANCELED"}
    assert await ann.read("SubscribeToTask", {"id": task_id}, **{"Last-Event-ID": "3"}) == []


@pytest.mark.parametrize("cursor", ["", "x", "-1", "1.5", "3", "1" * 10])
async def test_a_malformed_cursor_or_one_ahead_of_the_task_is_refused(ann: Caller, cursor: str) -> None:
    task_id = await ann.start()
    refused = await ann.call("SubscribeToTask", {"id": task_id}, **{"Last-Event-ID": cursor})
    assert refused.code in (-32602, 400)
    assert refused.info["metadata"] == {"code": "invalid_cursor", "field": "Last-Event-ID"}


async def test_pieces_of_a_reply_go_only_to_streams_that_asked_for_them(ann: Caller, gateway: Gateway) -> None:
    gateway.engine.hold()
    task_id = await ann.start()
    subscribe = {"id": task_id}
    async with (
        asyncio.timeout(20),
        ann.stream("SubscribeToTask", subscribe, **DELTAS) as asked,
        ann.stream("SubscribeToTask", subscribe) as plain,
    ):
        await asked.next()
        await plain.next()
        await gateway.bus.until_watched(task_id, 2)
        gateway.engine.say_piece(task_id, "Hel")
        gateway.engine.say_piece(task_id, "lo", index=1)
        gateway.engine.release()
        pieces = [await asked.next() for _ in range(3)]
        assert [event.is_delta for event in pieces] == [True, True, False]
        assert numbers(pieces) == [None, None, 2]
        assert not (await plain.next()).is_delta


async def test_what_the_bus_lost_is_filled_from_the_store(
    ann: Caller, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    task_id = await ann.start()
    publish, dropped = gateway.bus.publish, asyncio.Queue[Frame]()
    monkeypatch.setattr(gateway.bus, "publish", dropped.put_nowait)
    async with asyncio.timeout(20), ann.stream("SubscribeToTask", {"id": task_id}) as events:
        await events.next()
        at_once = {"returnImmediately": True}
        await ann.call("SendMessage", {"message": words("more", "m2", task_id), "configuration": at_once})
        assert (await dropped.get()).seq == 3
        publish(await dropped.get())  # the first one is lost: a jump
        assert numbers([await events.next() for _ in range(2)]) == [3, 4]


async def test_numbers_that_a_failover_took_back_are_skipped_and_the_task_is_sent_again(
    ann: Caller, gateway: Gateway
) -> None:
    task_id = await ann.start()
    snapshot = await gateway.snapshot(task_id)
    [event] = await gateway.store.events(task_id, 1, 10)
    later = NewEvent("state", lambda seq, *_: event.payload.replace('"seq":2', f'"seq":{seq}'))
    commit = Commit(task_id, "after the failover", 5, [later], snapshot, "")
    assert [written.seq for written in (await gateway.store.commit(commit)).events] == [6, 7]
    async with asyncio.timeout(20), ann.stream("SubscribeToTask", {"id": task_id}, **{"Last-Event-ID": "2"}) as events:
        again, after = await events.next(), await events.next()
    assert (again.id, again.payload["task"]["id"], again.seq) == (6, task_id, 2)
    assert (after.id, after.seq) == (7, 7)


async def test_a_silent_stream_is_pinged(ann: Caller, gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    assert event_stream.PING_INTERVAL_S == 3.0
    monkeypatch.setattr(event_stream, "PING_INTERVAL_S", 0.02)
    gateway.engine.hold()
    async with asyncio.timeout(20), ann.stream("SendStreamingMessage", {"message": words("hello", "m1")}) as events:
        await events.next()
        last = asyncio.create_task(events.next())
        await events.pinged.wait()
        gateway.engine.release()
        assert (await last).state == "INPUT_REQUIRED"


async def test_a_client_that_vanishes_changes_nothing_and_frees_its_place(
    settings: Settings, tmp_path: Path, binding: str
) -> None:
    async with running_gateway(settings, tmp_path, max_streams=1) as gateway:
        ann = gateway.caller(binding)
        gateway.engine.hold()
        async with ann.stream("SendStreamingMessage", {"message": words("hello", "m1")}) as events:
            task_id = (await events.next()).payload["task"]["id"]
            full = await ann.call("SubscribeToTask", {"id": task_id})
            assert (full.status, full.headers["retry-after"]) == (429, "5")
            assert (await gateway.caller(binding, "bob").call("SubscribeToTask", {"id": task_id})).status != 429
        await gateway.bus.until_watched(task_id, 0)
        gateway.engine.release()
        async with asyncio.timeout(20):
            await ann.send("still there?", "m2", task_id)
        async with ann.stream("SubscribeToTask", {"id": task_id}) as events:
            assert (await events.next()).state == "INPUT_REQUIRED"


async def test_many_streams_opened_at_once_do_not_pass_the_limit(settings: Settings, tmp_path: Path) -> None:
    async with running_gateway(settings, tmp_path, max_streams=3) as gateway:
        ann = gateway.caller("HTTP+JSON")
        gateway.engine.hold()
        task_id = await ann.start()
        request = {"method": "GET", "url": f"{gateway.url}/rest/tasks/{task_id}:subscribe", "headers": ann.headers}
        responses = await asyncio.gather(
            *(gateway.http.send(gateway.http.build_request(**request), stream=True) for _ in range(10))
        )
        assert sorted(response.status_code for response in responses) == [200] * 3 + [429] * 7
        for response in responses:
            await response.aclose()


async def test_a_process_full_of_streams_says_503(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_STREAMS_PER_PROCESS", 0)
    told = await gateway.caller().call("SendStreamingMessage", {"message": words("hello", "m1")})
    assert (told.status, told.headers["retry-after"]) == (503, "2")
    assert gateway.engine.deliveries == []


async def test_one_stalled_reader_among_fifty_hurts_only_itself(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Long enough for 49 readers that share this process with the server, also on a busy machine.
    monkeypatch.setattr(event_stream, "SEND_TIMEOUT_S", 6.0)
    async with running_gateway(settings, tmp_path, max_streams=60) as gateway:
        ann = gateway.caller("HTTP+JSON")
        gateway.engine.hold()
        task_id = await ann.start()
        with _connect_and_stall(gateway, task_id, ann.headers):
            async with asyncio.timeout(50), asyncio.TaskGroup() as group:
                readers = [group.create_task(ann.read("SubscribeToTask", {"id": task_id}, **DELTAS)) for _ in range(49)]
                await gateway.bus.until_watched(task_id, 50)
                for index in range(60):
                    gateway.engine.say_piece(task_id, "x" * 100_000, index)
                    await asyncio.sleep(0)
                await ann.call("CancelTask", {"id": task_id})
            for reader in readers:
                assert len([event for event in reader.result() if event.is_delta]) == 60
                assert numbers(reader.result())[-1] == 2
            await gateway.bus.until_watched(task_id, 0)  # the stalled one was closed alone


async def test_streams_end_cleanly_when_the_gateway_stops(settings: Settings, tmp_path: Path, binding: str) -> None:
    async with running_gateway(settings, tmp_path) as gateway:
        ann = gateway.caller(binding)
        gateway.engine.hold()
        task_id = await ann.start()
        reading = asyncio.create_task(ann.read("SubscribeToTask", {"id": task_id}))
        blocking = asyncio.create_task(ann.send("more", "m2", task_id))
        await gateway.bus.until_watched(task_id, 2)
        stopped_at = asyncio.get_running_loop().time()
        async with asyncio.timeout(10):
            # `running_gateway` stops the server at the end of its block; do what its server does first.
            gateway.app.state.stop_streams()
            # The queued message may or may not have reached the reader by now; nothing but WORKING has happened.
            assert {event.state for event in await reading} == {"WORKING"}
            # The message is in: its sender learns the task, and looks for the answer elsewhere.
            answer = (await blocking).result["task"]
            assert (answer["id"], answer["status"]["state"]) == (task_id, "TASK_STATE_WORKING")
        assert asyncio.get_running_loop().time() - stopped_at < 5
        assert [event.state for event in await ann.read("SubscribeToTask", {"id": task_id})] == ["WORKING"]


def _connect_and_stall(gateway: Gateway, task_id: str, headers: dict[str, str]) -> socket.socket:
    """Subscribe, and never read."""
    host, _, port = gateway.url.removeprefix("http://").partition(":")
    sock = socket.create_connection((host, int(port)))
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    lines = [f"GET /rest/tasks/{task_id}:subscribe HTTP/1.1", f"Host: {host}:{port}"]
    every = {**headers, **DELTAS}
    lines += [f"{name}: {value}" for name, value in every.items()]
    sock.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
    return sock
