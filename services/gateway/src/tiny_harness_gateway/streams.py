"""The two streaming operations, on routes of our own: stored bytes are spliced into frames, never parsed.

Source: A2A 1.0 §3.1.2 and §3.1.6; DESIGN: events and subscriptions. A send ends with the turn that reads its message; a
subscription stays open through INPUT_REQUIRED until the task ends.
"""

import json
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any, Final, TypeVar

from a2a.extensions.common import HTTP_EXTENSION_HEADER, get_requested_extensions
from a2a.types import SendMessageRequest, SubscribeToTaskRequest
from a2a.utils.errors import InvalidParamsError
from google.protobuf.json_format import ParseDict, ParseError
from google.protobuf.message import Message
from starlette.requests import Request
from starlette.responses import Response

from tiny_harness.contracts import Sender
from tiny_harness.errors import InvalidInput, TaskEnded, Unavailable
from tiny_harness.events import Event
from tiny_harness_gateway import requests
from tiny_harness_gateway.auth import CALLER
from tiny_harness_gateway.bindings import REST, Binding, JsonRpc, refusal
from tiny_harness_gateway.conversations import Conversations, Sent
from tiny_harness_gateway.errors import plain_response
from tiny_harness_gateway.event_stream import EventStream
from tiny_harness_gateway.views import Json, ends_turn_of, is_terminal

M = TypeVar("M", bound=Message)

MAX_STREAMS_PER_PROCESS: Final = 5_000


class Streams:
    """The streaming operations on both bindings."""

    def __init__(self, conversations: Conversations, max_per_participant: int) -> None:
        self._conversations = conversations
        self._max_per_participant = max_per_participant
        self._open: Counter[str] = Counter()

    async def rpc(self, request: Request, body: Json) -> Response:
        """Answer a JSON-RPC call of a streaming method."""
        binding = JsonRpc(body.get("id"))
        params = body.get("params") or {}
        if body["method"] == "SubscribeToTask":
            return await self._subscribe(request, binding, lambda: _parse(params, SubscribeToTaskRequest()))
        return await self._send(request, binding, lambda: _parse(params, SendMessageRequest()))

    async def rest_send(self, request: Request) -> Response:
        """Answer `POST /message:stream`."""
        body = await request.body()
        return await self._send(request, REST, lambda: _parse(_json(body), SendMessageRequest()))

    async def rest_subscribe(self, request: Request) -> Response:
        """Answer `GET` and `POST /tasks/{id}:subscribe`."""
        return await self._subscribe(request, REST, lambda: SubscribeToTaskRequest(id=request.path_params["id"]))

    async def _send(self, request: Request, binding: Binding, read: Callable[[], SendMessageRequest]) -> Response:
        caller: Sender = request.scope[CALLER]
        try:
            requests.check_version(request)
            params = read()
            requests.refuse_tenant(params.tenant)
            shown = requests.history_length(params.configuration)
            if (full := self._refuse_more(caller)) is not None:
                return full
            sent = await self._conversations.send(caller, requests.message_json(params.message))
            return self._answer(caller, self._turn(request, binding, caller, sent, shown))
        except Exception as error:  # noqa: BLE001 - the edge: told as an answer of the binding, logged if unforeseen
            return refusal(binding, error)

    async def _subscribe(
        self, request: Request, binding: Binding, read: Callable[[], SubscribeToTaskRequest]
    ) -> Response:
        caller: Sender = request.scope[CALLER]
        try:
            requests.check_version(request)
            params = read()
            requests.refuse_tenant(params.tenant)
            cursor = requests.read_cursor(request)
            if (full := self._refuse_more(caller)) is not None:
                return full
            snapshot = (await self._conversations.record(caller, params.id)).snapshot
            if cursor is None and snapshot.state.is_terminal:
                raise TaskEnded(params.id, snapshot.state.word)
            if cursor is not None and cursor > snapshot.head:
                raise InvalidInput("invalid_cursor", "Last-Event-ID", "is ahead of the task")
            return self._answer(caller, self._task(request, binding, caller, params.id, cursor))
        except Exception as error:  # noqa: BLE001 - the edge: told as an answer of the binding, logged if unforeseen
            return refusal(binding, error)

    async def _turn(
        self, request: Request, binding: Binding, caller: Sender, sent: Sent, history_length: int
    ) -> AsyncGenerator[bytes]:
        """The Task, then events until the turn that reads the message has ended."""
        seq = sent.receipt.seq
        if seq > 1:
            yield binding.frame(None, await self._task_payload(caller, sent.task_id, history_length, seq))
            if sent.is_settled:
                return
        after = seq if seq > 1 else 0
        async with self._conversations.follow(sent.task_id, after, deltas=_wants_deltas(request)) as items:
            async for item in items:
                yield await self._frame(binding, caller, item)
                if isinstance(item, Event) and (sent.is_settled or ends_turn_of(item, sent.message_id)):
                    return

    async def _task(
        self, request: Request, binding: Binding, caller: Sender, task_id: str, cursor: int | None
    ) -> AsyncGenerator[bytes]:
        """The Task, or what was missed since the cursor; then events until the task has ended."""
        if cursor is None:
            record = await self._conversations.record(caller, task_id)
            cursor = record.snapshot.head
            view = await self._conversations.view(record, requests.DEFAULT_HISTORY, cursor)
            yield binding.frame(cursor, _dump({"task": view}))
            if record.snapshot.state.is_terminal:
                return
        elif await self._has_seen_the_end(caller, task_id, cursor):
            return
        async with self._conversations.follow(task_id, cursor, deltas=_wants_deltas(request)) as items:
            async for item in items:
                yield await self._frame(binding, caller, item)
                if isinstance(item, Event) and is_terminal(item):
                    return

    async def _has_seen_the_end(self, caller: Sender, task_id: str, cursor: int) -> bool:
        snapshot = (await self._conversations.record(caller, task_id)).snapshot
        return snapshot.state.is_terminal and cursor >= snapshot.head

    async def _frame(self, binding: Binding, caller: Sender, item: Any) -> bytes:
        if isinstance(item, Event) and item.kind == "lost":
            # Numbers that a failover took back: what the client has may be wrong, so it gets the Task again.
            payload = await self._task_payload(caller, item.task_id, requests.DEFAULT_HISTORY, None)
            return binding.frame(item.seq, payload)
        return binding.frame(item.seq, item.payload)

    async def _task_payload(self, caller: Sender, task_id: str, history_length: int, at: int | None) -> str:
        record = await self._conversations.record(caller, task_id)
        return _dump({"task": await self._conversations.view(record, history_length, at)})

    def _refuse_more(self, caller: Sender) -> Response | None:
        if self._open.total() >= MAX_STREAMS_PER_PROCESS:
            raise Unavailable("this gateway has as many streams as it can hold")
        if self._open[caller.id] >= self._max_per_participant:
            limit = f"at most {self._max_per_participant} streams at a time"
            return plain_response(429, "too_many_streams", limit, {"Retry-After": "5"})
        return None

    def _answer(self, caller: Sender, chunks: AsyncGenerator[bytes]) -> Response:
        async def counted() -> AsyncGenerator[bytes]:
            self._open[caller.id] += 1
            try:
                async with aclosing(chunks):
                    async for chunk in chunks:
                        yield chunk
            finally:
                self._open[caller.id] -= 1
                if not self._open[caller.id]:
                    del self._open[caller.id]

        return EventStream(counted())


def _wants_deltas(request: Request) -> bool:
    return requests.wants_deltas(get_requested_extensions(request.headers.getlist(HTTP_EXTENSION_HEADER)))


def _parse(params: Any, into: M) -> M:
    try:
        return ParseDict(params, into, ignore_unknown_fields=True)
    except ParseError as error:
        raise InvalidParamsError(message=f"malformed parameters: {error}") from None


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        raise InvalidParamsError(message="the body is no JSON") from None


def _dump(payload: Json) -> str:
    return json.dumps(payload, ensure_ascii=False, separators=(",", ":"))
