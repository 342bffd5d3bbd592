"""A gateway on a real server with a real store and bus, and what tests need to talk to it on both bindings."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from starlette.applications import Starlette

from tests.integration.gateway.fake_engine import FakeEngine
from tests.integration.gateway.watched_bus import WatchedBus
from tiny_harness.contracts import TaskSnapshot
from tiny_harness.ext import stream
from tiny_harness.settings import Settings
from tiny_harness.store import Store, open_store
from tiny_harness.web_server import bind_tcp, serving
from tiny_harness_gateway.app import create_app

Json = dict[str, Any]

TOKEN = "a-token-of-the-tests"
PATIENCE_S = 20

REST_CALLS: dict[str, tuple[str, str]] = {
    "SendMessage": ("POST", "/message:send"),
    "SendStreamingMessage": ("POST", "/message:stream"),
    "GetTask": ("GET", "/tasks/{id}"),
    "ListTasks": ("GET", "/tasks"),
    "CancelTask": ("POST", "/tasks/{id}:cancel"),
    "SubscribeToTask": ("GET", "/tasks/{id}:subscribe"),
    "CreateTaskPushNotificationConfig": ("POST", "/tasks/{taskId}/pushNotificationConfigs"),
    "GetTaskPushNotificationConfig": ("GET", "/tasks/{taskId}/pushNotificationConfigs/{id}"),
    "ListTaskPushNotificationConfigs": ("GET", "/tasks/{taskId}/pushNotificationConfigs"),
    "DeleteTaskPushNotificationConfig": ("DELETE", "/tasks/{taskId}/pushNotificationConfigs/{id}"),
    "GetExtendedAgentCard": ("GET", "/extendedAgentCard"),
}
"""Where each operation is on HTTP+JSON."""

BINDINGS = ("JSONRPC", "HTTP+JSON")


@dataclass
class Gateway:
    """A running gateway."""

    url: str
    socket: Path
    settings: Settings
    store: Store
    bus: WatchedBus
    engine: FakeEngine
    http: httpx.AsyncClient
    app: Starlette

    def caller(self, binding: str = "JSONRPC", name: str = "ann", **headers: str) -> "Caller":
        """Somebody who talks to the gateway."""
        own = {"Authorization": f"Bearer {TOKEN}", "X-Participant-Id": name, "A2A-Version": "1.0"}
        return Caller(self, binding, {**own, **headers})

    async def snapshot(self, task_id: str) -> TaskSnapshot:
        record = await self.store.task(task_id)
        assert record
        return record.snapshot


@dataclass
class Told:
    """An answer, the same for both bindings."""

    status: int
    headers: httpx.Headers
    text: str
    body: Any
    binding: str

    @property
    def result(self) -> Json:
        """What the operation answered."""
        assert self.status == 200, self.text
        body = self.body["result"] if self.binding == "JSONRPC" else self.body
        assert "error" not in self.body, self.text
        return body

    @property
    def code(self) -> int:
        """The JSON-RPC code, or the HTTP status."""
        assert "error" in self.body, self.text
        return self.body["error"]["code"]

    @property
    def info(self) -> Json:
        """The ErrorInfo."""
        error = self.body["error"]
        details = error["data"] if self.binding == "JSONRPC" else error["details"]
        return next(detail for detail in details if detail["@type"].endswith("ErrorInfo"))


@dataclass
class Caller:
    """A participant on one binding."""

    gateway: Gateway
    binding: str
    headers: dict[str, str]

    async def call(self, method: str, params: Json | None = None, **headers: str) -> Told:
        """Call an operation that answers once, or an error of one that streams."""
        response = await self.gateway.http.send(self._request(method, params or {}, headers))
        return self._told(response)

    @asynccontextmanager
    async def stream(self, method: str, params: Json, **headers: str) -> AsyncGenerator["Sse"]:
        """Open a stream."""
        response = await self.gateway.http.send(self._request(method, params, headers), stream=True)
        try:
            if not response.headers["content-type"].startswith("text/event-stream"):
                await response.aread()
                raise AssertionError(response.text)
            yield Sse(response, self.binding)
        finally:
            await response.aclose()

    async def send(self, text: str, message_id: str, task_id: str = "", **more: Any) -> Told:
        """Send words and wait for the turn."""
        return await self.call("SendMessage", {"message": words(text, message_id, task_id), **more})

    async def start(self, text: str = "hello", message_id: str = "m1") -> str:
        """Start a conversation; returns the task's id once it is parked, or at once while the engine holds."""
        at_once = {"configuration": {"returnImmediately": self.gateway.engine.is_holding}}
        return (await self.send(text, message_id, **at_once)).result["task"]["id"]

    async def task(self, task_id: str, **params: Any) -> Json:
        return (await self.call("GetTask", {"id": task_id, **params})).result

    async def read(self, method: str, params: Json, **headers: str) -> list["Sent"]:
        """Read a stream to its end."""
        async with self.stream(method, params, **headers) as events:
            return [event async for event in events]

    def _request(self, method: str, params: Json, headers: dict[str, str]) -> httpx.Request:
        every = {**self.headers, **headers}
        if self.binding == "JSONRPC":
            body = {"jsonrpc": "2.0", "id": "call-7", "method": method, "params": params}
            return self.gateway.http.build_request("POST", f"{self.gateway.url}/rpc", json=body, headers=every)
        verb, path = REST_CALLS[method]
        url = f"{self.gateway.url}/rest{path.format_map(params)}"
        rest = {key: value for key, value in params.items() if f"{{{key}}}" not in path}
        if verb == "POST" and rest:
            return self.gateway.http.build_request(verb, url, json=rest, headers=every)
        return self.gateway.http.build_request(verb, url, params=rest, headers=every)

    def _told(self, response: httpx.Response) -> Told:
        return Told(
            response.status_code,
            response.headers,
            response.text,
            json.loads(response.text) if response.text else None,
            self.binding,
        )


@dataclass
class Sent:
    """One server-sent event."""

    id: int | None
    payload: Json
    raw: str

    @property
    def state(self) -> str:
        body = next(iter(self.payload.values()))
        return body["status"]["state"].removeprefix("TASK_STATE_")

    @property
    def seq(self) -> int | None:
        body = next(iter(self.payload.values()))
        return body["metadata"][stream.KEY].get("seq")

    @property
    def is_delta(self) -> bool:
        return "delta" in (self.payload.get("statusUpdate") or {}).get("metadata", {}).get(stream.KEY, {})


@dataclass
class Sse:
    """Reads a stream of server-sent events."""

    response: httpx.Response
    binding: str
    pinged: asyncio.Event = field(default_factory=asyncio.Event)
    retries: list[int] = field(default_factory=list[int])

    def __aiter__(self) -> AsyncIterator[Sent]:
        if not hasattr(self, "_events"):
            self._events = self._read()
        return self._events

    async def next(self) -> Sent:
        return await anext(aiter(self))

    async def _read(self) -> AsyncGenerator[Sent]:
        fields: dict[str, str] = {}
        async for line in self.response.aiter_lines():
            name, _, value = line.partition(": ")
            if line.startswith(":"):
                assert line == ": ping"
                self.pinged.set()
            elif name == "retry":
                self.retries.append(int(value))
            elif line:
                fields[name] = value
            elif "data" in fields:
                yield self._event(fields)
                fields = {}

    def _event(self, fields: dict[str, str]) -> Sent:
        data = json.loads(fields["data"])
        if self.binding == "JSONRPC":
            assert (data["jsonrpc"], data["id"]) == ("2.0", "call-7")
            data = data["result"]
        return Sent(int(fields["id"]) if "id" in fields else None, data, fields["data"])


def words(text: str, message_id: str, task_id: str = "") -> Json:
    """Make a message of text."""
    return {"messageId": message_id, "role": "ROLE_USER", "parts": [{"text": text}], "taskId": task_id}


def envelope(data: Json, message_id: str, task_id: str = "") -> Json:
    """Make a message of an envelope."""
    part = {"data": data, "mediaType": "application/vnd.tiny-harness.event+json"}
    return {"messageId": message_id, "role": "ROLE_USER", "parts": [part], "taskId": task_id}


@asynccontextmanager
async def running_gateway(settings: Settings, tmp_path: Path, **server: Any) -> AsyncGenerator[Gateway]:
    """Serve a gateway on a free loopback port and on a Unix socket while the block runs."""
    tcp = bind_tcp("127.0.0.1", 0)
    port = tcp.getsockname()[1]
    auth = server.pop("auth", settings.auth.mode)
    own = {"bind": f"127.0.0.1:{port}", "rate_limit_per_minute": 100_000, **server}
    settings = Settings.model_validate(
        {
            **settings.model_dump(),
            "server": {**settings.server.model_dump(), **own},
            "auth": {**settings.auth.model_dump(), "mode": auth},
        }
    )
    bus = WatchedBus()
    try:
        async with open_store(settings) as store, FakeEngine(store, bus).running() as engine:
            app = create_app(settings, store=store, bus=bus, token=TOKEN, engine=engine)
            limits = httpx.Limits(max_connections=None)
            async with (
                serving(app, tmp_path / "s", tcp),
                httpx.AsyncClient(timeout=PATIENCE_S, limits=limits) as http,
            ):
                yield Gateway(settings.server.url, tmp_path / "s", settings, store, bus, engine, http, app)
    finally:
        tcp.close()
