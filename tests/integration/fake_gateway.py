"""A small A2A server that speaks our facts on the wire and can be told to fail: what the client is tested against.

Its agent answers each message with `echo: …`. A message that starts with `slow` waits until `release` is set.
Its commands are `/status`, `/model NAME`, which changes the task, `/deploy`, which waits for `release`, and `/secret`,
which refuses. `look …` uses tools first, `which …` asks which one, and `refund …` asks whether it may.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Coroutine
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from tiny_harness.ext import commands, status, stream, task
from tiny_harness.intake import read_command

Json = dict[str, Any]

PARKED: Json = {"sub_state": "awaiting-next-message"}
MAY_I: Json = {"sub_state": "awaiting-approval", "request_id": "1.1.0", "choices": ["approve", "refuse"]}
WHICH: Json = {"sub_state": "awaiting-answer", "choices": ["one", "two"]}

OFFERS: list[Json] = [
    {"name": "status", "description": "Show where the task stands", "argument_hint": ""},
    {"name": "model", "description": "Choose a model", "argument_hint": "<name>"},
    {"name": "deploy", "description": "Deploy", "argument_hint": ""},
    {"name": "secret", "description": "Refuse", "argument_hint": ""},
]


@dataclass
class FakeTask:
    """One conversation: its events are finished StreamResponses."""

    task_id: str
    state: str = "TASK_STATE_WORKING"
    name: str = ""
    data: Json = field(default_factory=dict[str, Any])
    """What the `task` extension tells beside the name."""
    events: list[Json] = field(default_factory=list[Json])
    history: list[Json] = field(default_factory=list[Json])
    reading: list[str] = field(default_factory=list[str])
    waiting: list[str] = field(default_factory=list[str])
    why: Json = field(default_factory=lambda: PARKED)
    """Why it waits, when it does."""
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    def metadata(self) -> Json:
        parked = {status.KEY: self.why} if self.state == "TASK_STATE_INPUT_REQUIRED" else {}
        return {stream.KEY: {"seq": len(self.events)}, task.KEY: {"name": self.name, **self.data}, **parked}

    def body(self) -> Json:
        """The Task as it is now."""
        return {
            "id": self.task_id,
            "contextId": "ctx",
            "status": {"state": self.state, "timestamp": "2026-01-01T00:00:00.000Z"},
            "history": self.history,
            "metadata": self.metadata(),
        }

    async def update(self, extra: Json, message: Json | None = None, more: Json | None = None) -> None:
        """Write the next numbered event."""
        async with self.changed:
            metadata = self.metadata() | (more or {})
            metadata[stream.KEY] = {"seq": len(self.events) + 1, **extra}
            body: Json = {"state": self.state, "timestamp": "2026-01-01T00:00:00.000Z"}
            if message:
                body["message"] = message
                self.history.append(message)
            ids = {"taskId": self.task_id, "contextId": "ctx"}
            self.events.append({"statusUpdate": {**ids, "status": body, "metadata": metadata}})
            self.changed.notify_all()

    async def say(self, message_id: str, text: str, extra: Json) -> None:
        """Let the agent say something."""
        ids = {"taskId": self.task_id, "contextId": "ctx"}
        await self.update(
            extra, {"messageId": message_id, **ids, "role": "ROLE_AGENT", "parts": [{"text": text}]} if text else None
        )

    async def step(self, text: str, *tools: str, is_error: bool = False) -> None:
        """Let the agent use tools and go on."""
        calls = [{"call_id": f"c{n}", "name": name, "is_error": is_error} for n, name in enumerate(tools)]
        number = len(self.events)
        extra: Json = {"turn": 1, "step": number, "read": self.reading, "tool_calls": calls}
        await self.say(f"s{number}", text, extra)


class FakeGateway:
    """The server's state, and the faults that it plays."""

    def __init__(self) -> None:
        self.tasks: dict[str, FakeTask] = {}
        self.keys: dict[str, str] = {}
        self.taken: dict[str, tuple[str, int]] = {}
        self.offers = OFFERS
        self.release = asyncio.Event()
        self.cuts: list[int] = []
        """For each coming stream: the number of events after which its connection is cut."""
        self.closes: list[int] = []
        """For each coming stream: the number of events after which it ends cleanly."""
        self.refusals: list[Response] = []
        """Answers to the coming calls."""
        self.seen: list[tuple[str, dict[str, str]]] = []
        """Methods called, with their headers."""
        self._running: set[asyncio.Task[None]] = set()

    def app(self) -> Starlette:
        """The ASGI application."""
        card = Route("/.well-known/agent-card.json", self._card)
        app = Starlette(routes=[card, Route("/rpc", self._rpc, methods=["POST"])])
        app.state.stop_streams = lambda: None  # its streams end with their tasks
        return app

    async def _card(self, request: Request) -> Response:
        params = {"commands": self.offers}
        interface = {"url": "http://elsewhere.example/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
        return JSONResponse(
            {
                "name": "fake",
                "description": "fake",
                "version": "1",
                "supportedInterfaces": [interface],
                "capabilities": {"streaming": True, "extensions": [{"uri": commands.URI, "params": params}]},
                "defaultInputModes": ["text/plain"],
                "defaultOutputModes": ["text/plain"],
                "skills": [],
            }
        )

    async def _rpc(self, request: Request) -> Any:
        call = await request.json()
        self.seen.append((call["method"], dict(request.headers)))
        if self.refusals:
            return self.refusals.pop(0)
        params, method = call["params"], call["method"]
        if method == "SendStreamingMessage":
            return await self._send(call, params["message"])
        if method == "ListTasks":
            found = [known.body() for known in reversed(self.tasks.values())]
            return _result(call, {"tasks": found, "totalSize": len(found)})
        known = self.tasks.get(params["id"])
        if known is None:
            return _error(call, -32001, "Task not found", {})
        if method == "GetTask":
            return _result(call, known.body())
        if method == "CancelTask":
            return await self._cancel(call, known)
        cursor = request.headers.get("last-event-id")
        if known.state in ENDED and cursor is None:
            return _ended(call, known)
        return self._stream(call, known, int(cursor) if cursor else None, None)

    async def _cancel(self, call: Json, known: FakeTask) -> Response:
        if known.state in ENDED:
            return _error(call, -32002, "ended", {"code": "task_ended", "state": known.state[11:]})
        known.state = "TASK_STATE_CANCELED"
        await known.update({"in_reply_to": known.reading})
        return _result(call, known.body())

    async def _send(self, call: Json, message: Json) -> Any:
        message_id = message["messageId"]
        if message_id not in self.taken:
            key = message.get("metadata", {}).get(stream.KEY, {}).get("idempotency_key")
            task_id = message.get("taskId") or self.keys.setdefault(key, f"t{len(self.tasks) + 1}")
            if message.get("taskId") and task_id not in self.tasks:
                return _error(call, -32001, "Task not found", {})
            known = self.tasks.setdefault(task_id, FakeTask(task_id))
            if known.state in ENDED:
                return _ended(call, known)
            asked = message["parts"][0].get("data", {}).get("request_id")
            if asked and (known.state, asked) != ("TASK_STATE_INPUT_REQUIRED", known.why.get("request_id")):
                return _error(call, -32004, "not open", {"code": "already_answered", "request_id": asked})
            self.taken[message_id] = (task_id, len(known.events))
            await self._take(known, message)
        task_id, before = self.taken[message_id]
        return self._stream(call, self.tasks[task_id], before, message_id)

    async def _take(self, known: FakeTask, message: Json) -> None:
        envelope = message["parts"][0].get("data")
        if envelope and envelope.get("action") == "answer":
            known.state = "TASK_STATE_WORKING"
            await known.update({"received": message, "received_as": "control"})
            return self._start(self._resume(known, allowed=envelope["value"] == "approve"))
        if envelope and envelope["kind"] == "control":
            known.state = "TASK_STATE_" + ("COMPLETED" if envelope["action"] == "complete" else "INPUT_REQUIRED")
            cut, known.reading = known.reading, []
            return await known.update({"received": message, "received_as": "control", "in_reply_to": cut})
        if envelope:
            known.name = envelope["payload"]["name"]
            return await known.update({"received": message})
        known.history.append(message)
        if await self._take_command(known, message):
            return None
        if not known.events:
            known.name = message["parts"][0]["text"]
            body: Json = {**known.body(), "history": [message]}
            body["metadata"] = {**body["metadata"], stream.KEY: {"seq": 1, "turn": 1, "received_as": "turn"}}
            known.events.append({"task": body})
        elif known.state == "TASK_STATE_INPUT_REQUIRED" and known.why is MAY_I:
            known.state = "TASK_STATE_WORKING"
            await known.update({"received": message, "received_as": "queued"})
            known.reading.append(message["messageId"])
            return self._start(self._resume(known, allowed=False))
        elif known.state == "TASK_STATE_WORKING":
            known.waiting.append(message["messageId"])
            return await known.update({"received": message, "received_as": "queued"})
        else:
            known.state = "TASK_STATE_WORKING"
            await known.update({"received": message, "received_as": "turn"})
        known.reading = [message["messageId"]]
        self._start(self._turn(known, message["parts"][0]["text"]))
        return None

    async def _take_command(self, known: FakeTask, message: Json) -> bool:
        call = read_command(message["parts"][0]["text"])
        if call is None or call.name not in {offer["name"] for offer in self.offers}:
            return False
        if not known.events:
            known.state = "TASK_STATE_INPUT_REQUIRED"
            body: Json = {**known.body(), "history": [message]}
            body["metadata"] = {**body["metadata"], stream.KEY: {"seq": 1, "received_as": "command"}}
            known.events.append({"task": body})
        else:
            await known.update({"received": message, "received_as": "command"})
        self._start(self._answer(known, message["messageId"], call.name, call.arguments))
        return True

    async def _answer(self, known: FakeTask, message_id: str, name: str, arguments: str) -> None:
        if name == "deploy":
            await self.release.wait()
        known.data |= {"model": arguments} if name == "model" else {}
        outcome = "refused" if name == "secret" else "done"
        answer = {"name": name, "outcome": outcome}
        said: Json = {
            "messageId": f"c-{message_id}",
            "role": "ROLE_AGENT",
            "parts": [{"text": f"{name}: {outcome}"}, {"data": {"model": known.data.get("model")}}],
            "metadata": {commands.KEY: answer},
        }
        await known.update({"in_reply_to": [message_id]}, said, {commands.KEY: answer})

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        running = asyncio.create_task(work)
        self._running.add(running)
        running.add_done_callback(self._running.discard)

    async def _turn(self, known: FakeTask, text: str) -> None:
        if text.startswith("slow"):
            await self.release.wait()
        if not known.reading or known.state in ENDED:
            return
        if text.startswith("look"):
            await known.step("let me see", "p/orders.look", "p/orders.look")
            known.data["plan"] = {"steps": [{"id": "a", "name": "Look", "status": "done"}, {"id": "b", "name": "Tell"}]}
            await known.step("", "create_plan")
        if text.startswith("refund"):
            known.state, known.why = "TASK_STATE_INPUT_REQUIRED", MAY_I
            await known.say(f"q{len(known.events)}", "May I refund it?", {"in_reply_to": known.reading})
            return
        if text.startswith("which"):
            await known.step("", "ask_participant")
        known.why = WHICH if text.startswith("which") else PARKED
        await self._reply(known, "Which one?" if known.why is WHICH else f"echo: {text}")

    async def _resume(self, known: FakeTask, *, allowed: bool) -> None:
        known.why = PARKED
        await known.step("", "p/orders.refund", is_error=not allowed)
        await self._reply(known, "refunded" if allowed else "not refunded")

    async def _reply(self, known: FakeTask, text: str) -> None:
        answered, known.reading, known.waiting = known.reading, known.waiting, []
        known.state = "TASK_STATE_WORKING" if known.reading else "TASK_STATE_INPUT_REQUIRED"
        await known.say(f"a-{answered[0]}", text, {"in_reply_to": answered, "turn": 1})
        if known.reading:
            await self._turn(known, "the queue")

    def _stream(self, call: Json, known: FakeTask, after: int | None, message_id: str | None) -> "EventStream":
        cut = self.cuts.pop(0) if self.cuts else None
        close = self.closes.pop(0) if self.closes else None
        return EventStream(call["id"], known, after, message_id, cut, close)


ENDED = ("TASK_STATE_COMPLETED", "TASK_STATE_CANCELED", "TASK_STATE_FAILED")


@dataclass
class EventStream:
    """A response of server-sent events that can break off."""

    call_id: str
    task: FakeTask
    after: int | None
    message_id: str | None
    cut: int | None
    close: int | None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        # A comment first, as the gateway's ping: the client must skip it.
        await send({"type": "http.response.body", "body": b": ping\n\n", "more_body": True})
        sent = 0
        async with aclosing(self._events()) as events:
            while sent != self.cut and sent != self.close:
                event = await anext(events, None)
                if event is None:
                    break
                body = json.dumps({"jsonrpc": "2.0", "id": self.call_id, "result": event})
                await send({"type": "http.response.body", "body": f"data: {body}\n\n".encode(), "more_body": True})
                sent += 1
        if sent != self.cut:  # uvicorn closes the connection of a response that was never finished
            await send({"type": "http.response.body", "body": b""})

    async def _events(self) -> AsyncGenerator[Json]:
        position = self.after
        if position is None:
            position = len(self.task.events)
            yield {"task": self.task.body()}
        while True:
            async with self.task.changed:  # woken by the next event; ended tasks have none
                while len(self.task.events) == position and self.task.state not in ENDED:
                    await self.task.changed.wait()
            if len(self.task.events) == position:
                return
            event = self.task.events[position]
            position += 1
            yield event
            if self.message_id and self._ends(event):
                return

    def _ends(self, event: Json) -> bool:
        data = event.get("statusUpdate", {}).get("metadata", {}).get(stream.KEY, {})
        is_control = data.get("received_as") in ("control", None) and data.get("received")
        mine = is_control and data["received"]["messageId"] == self.message_id
        return bool(mine) or self.message_id in data.get("in_reply_to", ())


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        self.ready.set()


@asynccontextmanager
async def serving(gateway: FakeGateway, socket: Path) -> AsyncGenerator[None]:
    """Serve on a Unix socket for the length of the block."""
    config = uvicorn.Config(gateway.app(), uds=str(socket), log_config=None, timeout_graceful_shutdown=0, ws="none")
    server = _Server(config)
    async with asyncio.TaskGroup() as group:
        group.create_task(server.serve())
        async with asyncio.timeout(10):
            await server.ready.wait()
        try:
            yield
        finally:
            server.should_exit = True


def _result(call: Json, result: Json) -> Response:
    return JSONResponse({"jsonrpc": "2.0", "id": call["id"], "result": result})


def _error(call: Json, code: int, message: str, metadata: Json) -> Response:
    info = {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": "X",
        "domain": "a2a-protocol.org",
        "metadata": metadata,
    }
    return JSONResponse(
        {"jsonrpc": "2.0", "id": call["id"], "error": {"code": code, "message": message, "data": [info]}}
    )


def _ended(call: Json, known: FakeTask) -> Response:
    return _error(call, -32004, "ended", {"code": "task_ended", "state": known.state[11:]})
