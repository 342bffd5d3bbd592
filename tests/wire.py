"""A2A as it stands on the wire, for tests that look at frames, cursors and codes rather than through a client."""

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import httpx

from tiny_harness.ext import stream

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Frame:
    """One event of a stream: its number, and the StreamResponse."""

    seq: int
    payload: Json

    @property
    def body(self) -> Json:
        """The Task or the status update."""
        return next(iter(self.payload.values()))

    @property
    def state(self) -> str:
        """The state's word, without the prefix that all have."""
        return self.body["status"]["state"].removeprefix("TASK_STATE_")

    @property
    def data(self) -> stream.StreamData:
        """What the stream extension says about it."""
        return stream.read(self.body.get("metadata"))

    @property
    def words(self) -> str:
        """The agent's words, if it has some."""
        return "".join(part.get("text", "") for part in self.body["status"].get("message", {}).get("parts", ()))


Frames = AsyncGenerator[Frame]


def user_message(text: str, task_id: str = "", parts: Sequence[Json] = ()) -> Json:
    """Make a message of a text, and of more parts."""
    message: Json = {"messageId": str(uuid4()), "role": "ROLE_USER", "parts": [{"text": text}] if text else []}
    message["parts"] += parts
    return {**message, "taskId": task_id} if task_id else message


async def call(http: httpx.AsyncClient, method: str, **params: Any) -> Json:
    """Call a method over JSON-RPC; its whole answer."""
    response = await http.post("/rpc", json={"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    assert response.status_code == 200, response.text
    return response.json()


async def send(http: httpx.AsyncClient, message: Json, *, at_once: bool = False) -> Json:
    """Send a message; the task, after its turn or at once."""
    answer = await call(http, "SendMessage", message=message, configuration={"returnImmediately": at_once})
    return answer["result"]["task"]


@asynccontextmanager
async def streamed(http: httpx.AsyncClient, message: Json) -> AsyncGenerator[Frames]:
    """Send a message and stream its turn, over REST."""
    async with http.stream("POST", "/rest/message:stream", json={"message": message}) as response:
        yield read_frames(response)


@asynccontextmanager
async def subscribed(http: httpx.AsyncClient, task_id: str, cursor: int | None = None) -> AsyncGenerator[Frames]:
    """Subscribe to a task, over REST; after the event of that number, if one is given."""
    headers = {} if cursor is None else {"Last-Event-ID": str(cursor)}
    async with http.stream("GET", f"/rest/tasks/{task_id}:subscribe", headers=headers) as response:
        yield read_frames(response)


@asynccontextmanager
async def subscribed_by_rpc(http: httpx.AsyncClient, task_id: str, cursor: str) -> AsyncGenerator[Frames]:
    """Subscribe to a task, over JSON-RPC."""
    body = {"jsonrpc": "2.0", "id": 1, "method": "SubscribeToTask", "params": {"id": task_id}}
    async with http.stream("POST", "/rpc", json=body, headers={"Last-Event-ID": cursor}) as response:
        yield read_frames(response)


async def read_frames(response: httpx.Response) -> Frames:
    """Read the durable events of a stream."""
    assert response.headers["content-type"].startswith("text/event-stream"), (await response.aread()).decode()
    seq: int | None = None
    async for line in response.aiter_lines():
        field, _, value = line.partition(": ")
        if field == "id":
            seq = int(value)
        elif field == "data":
            payload = json.loads(value)
            assert seq is not None, "a durable event without a number"
            yield Frame(seq, payload.get("result", payload))
            seq = None
