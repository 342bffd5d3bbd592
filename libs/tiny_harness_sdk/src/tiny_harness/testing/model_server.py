"""A small server that speaks a model provider's wire format, for tests: a process of its own, on loopback.

    python -m tiny_harness.testing.openai_server --port 0
    python -m tiny_harness.testing.anthropic_server --port 0

print `listening on http://127.0.0.1:PORT` and serve streaming only. They answer `You said: <last user text>`, or
`The tools said: <results>` where tools spoke last. They are strict: what the real API refuses, or they do not know, is
refused with 400. A last user text that begins with one of these orders makes them call tools, or misbehave:

    !call NAME JSON        calls a tool, its arguments in pieces
    !calls [{"name", "arguments"}, ...]    says something, then calls several
    !half-call NAME JSON   ends the stream in the middle of the arguments
    !short-call NAME JSON  reaches the bound of its tokens there
    !short TEXT            reaches it after these words
    !status N TEXT         answers with this status and an error that says TEXT
    !later S               answers 429 with a Retry-After of S
    !garbage KIND          a stream that is `broken` JSON, JSON of the wrong `shape` or `nested` too deep, or `html`
    !half                  ends the stream before the answer is complete
    !cut                   breaks the connection in the middle
    !silent S              says nothing for S seconds, then answers
    !slow S                says the beginning, then nothing for S seconds, then the rest
    !open S                leaves the stream open for S seconds after the whole answer
    !failed CODE TEXT      an error inside the stream
    !refuse TEXT           refuses
    !empty                 answers without a word

`--fail-first N` makes the first N requests fail with `--fail-status`; `--require-key KEY` refuses others with 401.
`GET /test/requests` lists what was asked; `GET /test/disconnect` answers when a client has left in mid-stream.
"""

import argparse
import asyncio
import json
import socket
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import uvicorn
from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from tiny_harness.testing.model_orders import Answer, Asked, answer
from tiny_harness.testing.prompt_cache import PromptCache

NESTED: Final = 100_000
GARBAGE: Final = {
    "broken": 'event: x\ndata: {"type": "resp\n\n',
    "shape": 'event: x\ndata: [1, {"type": 2}]\n\n',
    "nested": f"event: x\ndata: {'[' * NESTED}{']' * NESTED}\n\n",
    "html": "",
}


class RequestBody(Protocol):
    """A request that was found in order."""

    def asked(self) -> Asked:
        """Say what was asked."""
        ...


@dataclass(frozen=True)
class Endpoint:
    """One of the APIs that a provider serves."""

    read: Callable[[bytes], RequestBody]
    """Raises `ValidationError`, a `ValueError`, for what it refuses."""
    frames: Callable[[Asked, Answer], Iterator[str]]
    failure: Callable[[str, str], str]
    """Frames an error inside a stream, from its code and its words."""


@dataclass
class ModelServer:
    """What the server was told to do, and what it saw."""

    endpoints: Mapping[str, Endpoint]
    """By path."""
    error: Callable[[int, str, str | None], dict[str, Any]]
    """Writes the body of a refusal, from its status, its words and its code."""
    cache: PromptCache
    fail_first: int = 0
    fail_status: int = 500
    require_key: str | None = None
    requests: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    disconnected: asyncio.Event = field(default_factory=asyncio.Event)

    async def answer(self, request: Request) -> Response:
        """Serve one of the APIs."""
        raw = await request.body()
        authorization = request.headers.get("authorization")
        seen = {"path": request.url.path, "authorization": authorization, "body": _json_or_none(raw)}
        self.requests.append(seen | {"raw": raw.decode(errors="replace")})
        if len(self.requests) <= self.fail_first:
            return self._error(self.fail_status, "told to fail at first")
        if self.require_key is not None and authorization != f"Bearer {self.require_key}":
            return self._error(401, f"Incorrect API key provided: {authorization}", "invalid_api_key")
        endpoint = self.endpoints[request.url.path]
        try:
            asked = endpoint.read(raw).asked()
        except ValidationError as error:
            return self._error(400, str(error.errors(include_url=False, include_input=False, include_context=False)))
        return self._obey(endpoint, asked)

    async def list_requests(self, request: Request) -> Response:
        """List what was asked so far."""
        del request
        return JSONResponse(self.requests)

    async def await_disconnect(self, request: Request) -> Response:
        """Answer when a client has left in mid-stream."""
        del request
        await self.disconnected.wait()
        return JSONResponse({})

    def _obey(self, endpoint: Endpoint, asked: Asked) -> Response:
        order, _, rest = asked.order.partition(" ")
        argument, _, text = rest.partition(" ")
        if order == "!status":
            return self._error(int(argument), text or "as you wish", "insufficient_quota" if "quota" in text else None)
        if order == "!later":
            return self._error(429, "later", headers={"retry-after": argument})
        if order == "!garbage" and argument == "html":
            return HTMLResponse("<html><body>Welcome to the hotel's network</body></html>")
        frames = list(endpoint.frames(asked, self.cache.bill(asked, answer(asked))))
        stream = self._watched(_misbehave(frames, endpoint, order, argument, text))
        return StreamingResponse(stream, media_type="text/event-stream")

    def _error(
        self, status: int, message: str, code: str | None = None, headers: Mapping[str, str] | None = None
    ) -> Response:
        return JSONResponse(self.error(status, message, code), status, headers)

    async def _watched(self, stream: AsyncGenerator[str]) -> AsyncGenerator[str]:
        try:
            async for frame in stream:
                yield frame
        except asyncio.CancelledError:  # a client that leaves cancels its stream
            self.disconnected.set()
            raise


async def _misbehave(
    frames: list[str], endpoint: Endpoint, order: str, argument: str, text: str
) -> AsyncGenerator[str]:
    """Stream an answer, or what the order makes of it."""
    half = len(frames) // 2
    match order:
        case "!garbage":
            frames = [*frames[:2], GARBAGE[argument]]
        case "!half" | "!half-call" | "!cut":
            frames = frames[:half]
        case "!failed":
            frames = [*frames[:2], endpoint.failure(argument, text)]
        case _:
            pass
    pauses = {"!silent": 0, "!slow": half, "!open": len(frames)}
    for number, frame in enumerate([*frames, ""]):
        if pauses.get(order) == number:
            await asyncio.sleep(float(argument))
        yield frame
    if order == "!cut":
        raise ConnectionError("told to cut the connection")


def _json_or_none(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except ValueError:
        return None


def create_app(server: ModelServer) -> Starlette:
    """Compose the application."""
    routes = [Route(path, server.answer, methods=["POST"]) for path in server.endpoints]
    routes += [Route("/test/requests", server.list_requests), Route("/test/disconnect", server.await_disconnect)]
    return Starlette(routes=routes)


def serve(make: Callable[..., ModelServer], arguments: Sequence[str] | None = None) -> None:
    """Serve until SIGTERM or SIGINT.

    Args:
        make: Makes the server from (fail_first=, fail_status=, require_key=).
        arguments: Default: those of the process.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0, help="0 picks a free one")
    parser.add_argument("--fail-first", type=int, default=0, metavar="N")
    parser.add_argument("--fail-status", type=int, default=500, metavar="STATUS")
    parser.add_argument("--require-key", metavar="KEY")
    options = parser.parse_args(arguments)
    server = make(fail_first=options.fail_first, fail_status=options.fail_status, require_key=options.require_key)
    with socket.create_server(("127.0.0.1", options.port)) as listener:
        print(f"listening on http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
        config = uvicorn.Config(create_app(server), log_level="critical", lifespan="off", timeout_graceful_shutdown=1)
        uvicorn.Server(config).run(sockets=[listener])
