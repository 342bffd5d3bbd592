"""A remote agent for tests: the official A2A server on loopback, whose work and whose troubles a test decides."""

import asyncio
import json
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from a2a.helpers import new_task_from_user_message, new_text_message
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    Message,
    Part,
)
from a2a.utils.constants import TransportProtocol
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from tiny_harness.background import in_background

PATIENCE_S = 60

PLAIN = PlainTextResponse("ok")

Meddle = Callable[[str, int], ASGIApp | None]
"""Given an operation and how often it was called before, may answer instead of the agent."""


class Job:
    """A task that the agent has been given."""

    def __init__(self, message: Message, updater: TaskUpdater) -> None:
        self.message = message
        self.updater = updater
        self.is_over = asyncio.Event()

    @property
    def task_id(self) -> str:
        return self.updater.task_id

    @property
    def text(self) -> str:
        return "\n".join(part.text for part in self.message.parts if part.text)

    async def done(self, *, says: str | None = None, makes: str | None = None) -> None:
        """End it as COMPLETED."""
        if makes is not None:
            await self.updater.add_artifact([Part(text=makes)])
        await self.updater.complete(_said(says))
        self.is_over.set()

    async def failed(self, says: str) -> None:
        await self.updater.failed(_said(says))
        self.is_over.set()

    async def asks(self, question: str) -> None:
        """Park with a question; the next message is another job."""
        await self.updater.requires_input(_said(question))
        self.is_over.set()

    async def wants_sign_in(self) -> None:
        """Wait in AUTH_REQUIRED; the work goes on after it."""
        await self.updater.requires_auth(_said("sign in first"))


def _said(text: str | None) -> Message | None:
    return new_text_message(text) if text is not None else None


class Desk(AgentExecutor):
    """Takes jobs, and keeps each until the test has finished it."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []
        self.cancelled: list[str] = []
        self.refuses_cancel = False
        self._arrived = asyncio.Condition()

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        assert context.message is not None
        task = context.current_task or new_task_from_user_message(context.message)
        if not context.current_task:
            await event_queue.enqueue_event(task)
        job = Job(context.message, TaskUpdater(event_queue, task.id, task.context_id))
        await job.updater.start_work()
        async with self._arrived:
            self.jobs.append(job)
            self._arrived.notify_all()
        await job.is_over.wait()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        assert context.task_id is not None
        assert context.context_id is not None
        self.cancelled.append(context.task_id)
        if self.refuses_cancel:
            await asyncio.Event().wait()
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()

    async def job(self, number: int = 0) -> Job:
        """Wait for the job of this number."""
        async with asyncio.timeout(PATIENCE_S), self._arrived:
            await self._arrived.wait_for(lambda: len(self.jobs) > number)
        return self.jobs[number]


@dataclass
class Site:
    """An agent that is served, and what was asked of it."""

    url: str
    desk: Desk
    store: InMemoryTaskStore
    calls: list[str] = field(default_factory=list[str])
    """Operations in the order in which they were called; `card` for the card."""
    headers: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    meddle: Meddle = lambda _operation, _before: None
    agent: ASGIApp = PLAIN
    """The agent itself, behind whoever meddles."""
    _called: asyncio.Condition = field(default_factory=asyncio.Condition)

    def count(self, operation: str) -> int:
        return self.calls.count(operation)

    async def note(self, operation: str, headers: dict[str, str]) -> ASGIApp | None:
        before = self.count(operation)
        async with self._called:
            self.calls.append(operation)
            self.headers.append(headers)
            self._called.notify_all()
        return self.meddle(operation, before)

    async def until_called(self, operation: str, times: int = 1) -> None:
        async with asyncio.timeout(PATIENCE_S), self._called:
            await self._called.wait_for(lambda: self.count(operation) >= times)


def make_card(url: str, bindings: tuple[str, ...] = ("JSONRPC", "HTTP+JSON"), *, streaming: bool = True) -> AgentCard:
    paths = {"JSONRPC": "/rpc", "HTTP+JSON": "/rest"}
    return AgentCard(
        name="desk",
        description="does things",
        version="1",
        supported_interfaces=[
            AgentInterface(url=url + paths[binding], protocol_binding=binding, protocol_version="1.0")
            for binding in bindings
        ],
        capabilities=AgentCapabilities(streaming=streaming),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="s", name="s", description="s", tags=["s"])],
    )


def _agent(handler: DefaultRequestHandler, card: AgentCard) -> ASGIApp:
    return Starlette(
        routes=[
            *create_agent_card_routes(card),
            *create_jsonrpc_routes(handler, "/rpc"),
            *create_rest_routes(handler, path_prefix="/rest"),
        ]
    )


def _front(site: Site) -> ASGIApp:
    """Note every call before the agent sees it, and let the test answer instead."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await site.agent(scope, receive, send)
        request = Request(scope, receive)
        body = await request.body()
        meddler = await site.note(_operation(request, body), dict(request.headers))
        return await (meddler or site.agent)(scope, _again(body, receive), send)

    return app


def _again(body: bytes, receive: Receive) -> Receive:
    is_given = False

    async def give() -> Any:
        nonlocal is_given
        if is_given:
            return await receive()
        is_given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return give


def _operation(request: Request, body: bytes) -> str:
    path = request.url.path
    if path.endswith("/agent-card.json"):
        return "card"
    if path == "/rpc":
        return str(json.loads(body)["method"])
    last = path.rpartition("/")[2]
    if ":" in last:
        return {"send": "SendMessage", "stream": "SendStreamingMessage", "subscribe": "SubscribeToTask"}.get(
            last.rpartition(":")[2], "CancelTask"
        )
    return "ListTasks" if last == "tasks" else "GetTask"


@asynccontextmanager
async def serving_agent(
    *,
    bindings: tuple[str, ...] = (TransportProtocol.JSONRPC.value, TransportProtocol.HTTP_JSON.value),
    streaming: bool = True,
    change_card: Callable[[AgentCard], None] = lambda _card: None,
) -> AsyncGenerator[Site]:
    """Serve an agent while the block runs."""
    sock = bound()
    url = f"http://127.0.0.1:{sock.getsockname()[1]}"
    card = make_card(url, bindings, streaming=streaming)
    change_card(card)
    site = Site(url, Desk(), InMemoryTaskStore())
    handler = DefaultRequestHandler(agent_executor=site.desk, task_store=site.store, agent_card=card)
    site.agent = _agent(handler, card)
    async with serving_app(_front(site), sock):
        try:
            yield site
        finally:
            await handler.aclose()


def bound(port: int = 0) -> socket.socket:
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind(("127.0.0.1", port))
    return sock


class _Server(uvicorn.Server):
    """A server that leaves signals alone, and says when it listens."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listens = asyncio.Event()

    @contextmanager
    def capture_signals(self) -> Any:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listens.set()


@asynccontextmanager
async def serving_app(app: ASGIApp, sock: socket.socket) -> AsyncGenerator[None]:
    """Serve an app on a bound socket while the block runs; its connections are cut at the end."""
    server = _Server(uvicorn.Config(app, log_config=None, lifespan="off", timeout_graceful_shutdown=0, ws="none"))

    def stop() -> None:
        server.should_exit = True

    async with in_background(server.serve([sock]), stop):
        await server.listens.wait()
        yield
        stop()
    sock.close()


def answering(status: int, body: str = "<html>sorry</html>", **headers: str) -> ASGIApp:
    """Answer with anything."""
    return Response(body, status, headers, media_type="text/html")


def answering_json(document: Any, status: int = 200) -> ASGIApp:
    return JSONResponse(document, status)


async def hanging(scope: Scope, receive: Receive, send: Send) -> None:
    """Never answer."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def cut(scope: Scope, receive: Receive, send: Send) -> None:
    """Break the connection in the middle of an answer."""
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"1000")]})
    await send({"type": "http.response.body", "body": b"{", "more_body": False})


async def closed_stream(scope: Scope, receive: Receive, send: Send) -> None:
    """Open a stream and close it without a word."""
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
    await send({"type": "http.response.body", "body": b": hello\n\n", "more_body": False})


def losing(inner: ASGIApp) -> ASGIApp:
    """Let the agent do its work, and lose its answer."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        async def swallow(_message: Any) -> None:
            return None

        await inner(scope, receive, swallow)
        await cut(scope, receive, send)

    return app


def on(operation: str, *answers: ASGIApp | None, then: ASGIApp | None = None) -> Meddle:
    """Meddle with the calls of one operation, one after another; `then` with all that follow."""

    def meddle(called: str, before: int) -> ASGIApp | None:
        if called != operation:
            return None
        return answers[before] if before < len(answers) else then

    return meddle


async def until(is_so: Callable[[], Awaitable[bool]]) -> None:
    """Wait for what only another process or a server can tell."""
    async with asyncio.timeout(PATIENCE_S):
        while not await is_so():  # noqa: ASYNC110 - another side cannot set an event of ours
            await asyncio.sleep(0.05)
