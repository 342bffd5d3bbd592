"""The two streaming operations, on routes of our own: stored bytes are spliced into frames, never parsed.

Source: A2A 1.0 §3.1.2 and §3.1.6; DESIGN: events and subscriptions. A send ends with the turn that reads its message; a
subscription stays open through INPUT_REQUIRED until the task ends. Without a cursor the first event is the Task; with
one there are the missed events and no Task.
"""

import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from functools import partial

from a2a.extensions.common import HTTP_EXTENSION_HEADER, get_requested_extensions
from a2a.types import SendMessageRequest, SubscribeToTaskRequest
from starlette.requests import Request
from starlette.responses import Response

from tiny_harness.bus import Frame
from tiny_harness.contracts import Sender
from tiny_harness.errors import InvalidInput, TaskEnded
from tiny_harness.events import Event
from tiny_harness_gateway import requests
from tiny_harness_gateway.auth import CALLER
from tiny_harness_gateway.bindings import REST, Binding, JsonRpc, refusal
from tiny_harness_gateway.conversations import Conversations, Sent
from tiny_harness_gateway.errors import plain_response
from tiny_harness_gateway.event_stream import EventStream
from tiny_harness_gateway.limits import StreamLimit
from tiny_harness_gateway.push_configs import PushConfigs
from tiny_harness_gateway.views import Json, is_terminal

Chunks = AsyncGenerator[bytes]
Start = Callable[[Request, Binding], Awaitable[Chunks]]


class Streams:
    """The streaming operations on both bindings."""

    def __init__(self, conversations: Conversations, pushes: PushConfigs, limit: StreamLimit) -> None:
        self._conversations = conversations
        self._pushes = pushes
        self._limit = limit

    async def rpc(self, request: Request, body: Json) -> Response:
        """Answer a JSON-RPC call of a streaming method."""
        start = self._subscribe if body["method"] == "SubscribeToTask" else self._send
        return await self._answer(request, JsonRpc(body.get("id")), partial(start, body.get("params", {})))

    async def rest_send(self, request: Request) -> Response:
        """Answer `POST /message:stream`."""
        body = await request.body()

        async def start(request: Request, binding: Binding) -> Chunks:
            return await self._send(requests.read_json(body), request, binding)

        return await self._answer(request, REST, start)

    async def rest_subscribe(self, request: Request) -> Response:
        """Answer `GET` and `POST /tasks/{id}:subscribe`."""
        return await self._answer(request, REST, partial(self._subscribe, {"id": request.path_params["id"]}))

    async def _answer(self, request: Request, binding: Binding, start: Start) -> Response:
        """Answer a stream, or an ordinary response that says why there is none."""
        caller: Sender = request.scope[CALLER]
        try:
            requests.check_version(request)
            if not self._limit.take(caller.id):
                told = f"at most {self._limit.per_participant} streams at a time"
                return plain_response(429, "too_many_streams", told, {"Retry-After": "5"})
        except Exception as error:  # noqa: BLE001 - the edge: told as an answer of the binding, logged if unforeseen
            return refusal(binding, error)
        release = partial(self._limit.release, caller.id)
        try:
            return EventStream(await start(request, binding), release)
        except Exception as error:  # noqa: BLE001 - the edge: told as an answer of the binding, logged if unforeseen
            release()
            return refusal(binding, error)
        except BaseException:  # a cancelled call must give its place back, too
            release()
            raise

    async def _send(self, params: Json, request: Request, binding: Binding) -> Chunks:
        """Deliver a message; the stream follows the turn that reads it."""
        parsed = requests.parse(params, SendMessageRequest())
        requests.refuse_tenant(parsed.tenant)
        shown = requests.history_length(parsed.configuration)
        caller: Sender = request.scope[CALLER]
        sent = await self._pushes.send(caller, parsed)
        return self._turn(request, binding, sent, shown)

    async def _subscribe(self, params: Json, request: Request, binding: Binding) -> Chunks:
        """Check that a task can be followed from the cursor, if one is given."""
        parsed = requests.parse(params, SubscribeToTaskRequest())
        requests.refuse_tenant(parsed.tenant)
        cursor = requests.read_cursor(request)
        snapshot = (await self._conversations.record(request.scope[CALLER], parsed.id)).snapshot
        if cursor is None and snapshot.state.is_terminal:
            raise TaskEnded(parsed.id, snapshot.state.word)
        if cursor is not None and cursor > snapshot.head:
            raise InvalidInput("invalid_cursor", "Last-Event-ID", "is ahead of the task")
        return self._task(request, binding, parsed.id, cursor)

    async def _turn(self, request: Request, binding: Binding, sent: Sent, history_length: int) -> Chunks:
        """The Task, then events until the turn that reads the message has ended."""
        caller: Sender = request.scope[CALLER]
        # The event that records a first message is the Task itself; after it the Task is put together as of its event.
        cursor = sent.receipt.seq if sent.receipt.seq > 1 else 0
        if sent.is_settled and cursor:
            # What it did may have been more than one event, such as a result and then the end.
            head = (await self._conversations.record(caller, sent.task_id)).snapshot.head
            yield await self._task_frame(binding, caller, sent.task_id, head, history_length)
            return
        if cursor:
            yield await self._task_frame(binding, caller, sent.task_id, cursor, history_length)
        async with self._conversations.follow(sent.task_id, cursor, deltas=_wants_deltas(request)) as items:
            async for item in items:
                yield await self._frame(binding, caller, item)
                if isinstance(item, Event) and (sent.is_settled or sent.is_last(item)):
                    return

    async def _task(self, request: Request, binding: Binding, task_id: str, cursor: int | None) -> Chunks:
        """The Task, or what was missed since the cursor; then events until the task has ended."""
        caller: Sender = request.scope[CALLER]
        snapshot = (await self._conversations.record(caller, task_id)).snapshot
        if cursor is None:
            cursor = snapshot.head
            yield await self._task_frame(binding, caller, task_id, cursor)
        if snapshot.state.is_terminal and cursor >= snapshot.head:
            return
        async with self._conversations.follow(task_id, cursor, deltas=_wants_deltas(request)) as items:
            async for item in items:
                yield await self._frame(binding, caller, item)
                if isinstance(item, Event) and is_terminal(item):
                    return

    async def _frame(self, binding: Binding, caller: Sender, item: Event | Frame) -> bytes:
        if isinstance(item, Event) and item.kind == "lost":
            # Numbers that a failover took back: what the client has may be wrong, so it gets the Task again.
            return await self._task_frame(binding, caller, item.task_id, item.seq)
        return binding.frame(item.seq, item.payload)

    async def _task_frame(
        self, binding: Binding, caller: Sender, task_id: str, at: int, history_length: int = requests.DEFAULT_HISTORY
    ) -> bytes:
        """Frame the Task as it was at an event, whose number is the cursor to go on from."""
        view = await self._conversations.view(caller, task_id, history_length, at)
        return binding.frame(at, json.dumps({"task": view}, ensure_ascii=False, separators=(",", ":")))


def _wants_deltas(request: Request) -> bool:
    return requests.wants_deltas(get_requested_extensions(request.headers.getlist(HTTP_EXTENSION_HEADER)))
