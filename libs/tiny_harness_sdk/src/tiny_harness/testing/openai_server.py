"""A small server that speaks OpenAI's wire formats, for tests: a process of its own, on loopback.

    python -m tiny_harness.testing.openai_server --port 0

prints `listening on http://127.0.0.1:PORT` and serves `POST /v1/responses` and `POST /v1/chat/completions`, streaming
only. It answers `You said: <last user text>`. It is strict: what it does not know is refused with 400. A last user text
that begins with one of these orders makes it misbehave:

    !status N TEXT     answers with this status and an error that says TEXT
    !garbage KIND      a stream that is `broken` JSON, JSON of the wrong `shape`, or a page of `html`
    !half              ends the stream before the answer is complete
    !cut               breaks the connection in the middle
    !silent S          says nothing for S seconds, then answers
    !slow S            says the beginning, then nothing for S seconds, then the rest
    !open S            leaves the stream open for S seconds after the whole answer
    !failed CODE TEXT  an error inside the stream
    !refuse TEXT       refuses
    !empty             answers without a word

`--fail-first N` makes the first N requests fail with `--fail-status`; `--require-key KEY` refuses others with 401.
`GET /test/requests` lists what was asked; `GET /test/disconnect` answers when a client has left in mid-stream.
"""

import argparse
import asyncio
import json
import socket
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import uvicorn
from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from tiny_harness.testing.openai_wire import ChatBody, ResponsesBody, chat_events, event, responses_events

PATHS: Final = {"/v1/responses": ResponsesBody, "/v1/chat/completions": ChatBody}
GARBAGE: Final = {"broken": 'data: {"type": "resp\n\n', "shape": event([1, {"type": 2}]), "html": ""}
AnyBody = ResponsesBody | ChatBody


@dataclass
class OpenAIServer:
    """What the server was told to do, and what it saw."""

    fail_first: int = 0
    fail_status: int = 500
    require_key: str | None = None
    requests: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    disconnected: asyncio.Event = field(default_factory=asyncio.Event)

    async def answer(self, request: Request) -> Response:
        """Serve one of the two APIs."""
        raw = await request.body()
        authorization = request.headers.get("authorization")
        self.requests.append({"path": request.url.path, "authorization": authorization, "body": _json_or_none(raw)})
        if len(self.requests) <= self.fail_first:
            return _error(self.fail_status, "told to fail at first")
        if self.require_key is not None and authorization != f"Bearer {self.require_key}":
            return _error(401, f"Incorrect API key provided: {authorization}", "invalid_api_key")
        try:
            body = PATHS[request.url.path].model_validate_json(raw)
        except ValidationError as error:
            return _error(400, str(error.errors(include_url=False, include_input=False)))
        return self._obey(body)

    async def list_requests(self, request: Request) -> Response:
        """List what was asked so far."""
        del request
        return JSONResponse(self.requests)

    async def await_disconnect(self, request: Request) -> Response:
        """Answer when a client has left in mid-stream."""
        del request
        await self.disconnected.wait()
        return JSONResponse({})

    def _obey(self, body: AnyBody) -> Response:
        said = [message.content for message in body.words if message.role == "user"]
        order, _, rest = (said[-1] if said else "").partition(" ")
        argument, _, text = rest.partition(" ")
        if order == "!status":
            return _error(int(argument), text or "as you wish", "insufficient_quota" if "quota" in text else None)
        if order == "!garbage" and argument == "html":
            return HTMLResponse("<html><body>Welcome to the hotel's network</body></html>")
        stream = self._watched(_misbehave(body, order, argument, rest))
        return StreamingResponse(stream, media_type="text/event-stream")

    async def _watched(self, stream: AsyncGenerator[str]) -> AsyncGenerator[str]:
        try:
            async for frame in stream:
                yield frame
        except asyncio.CancelledError:  # a client that leaves cancels its stream
            self.disconnected.set()
            raise


async def _misbehave(body: AnyBody, order: str, argument: str, rest: str) -> AsyncGenerator[str]:
    """Stream an answer, or what the order makes of it."""
    texts: dict[str, Callable[[], str]] = {"!refuse": lambda: rest, "!empty": lambda: ""}
    last = next((message.content for message in reversed(body.words) if message.role == "user"), "")
    text = texts.get(order, lambda: f"You said: {last}")()
    frames = list(_frames(body, text, order == "!refuse"))
    match order:
        case "!garbage":
            frames = [*frames[:2], GARBAGE[argument]]
        case "!half" | "!cut":
            frames = frames[:3]
        case "!failed":
            frames = [*frames[:2], _failed(body, argument, rest.partition(" ")[2])]
        case _:
            pass
    pauses = {"!silent": 0, "!slow": 3, "!open": len(frames)}
    for number, frame in enumerate([*frames, ""]):
        if pauses.get(order) == number:
            await asyncio.sleep(float(argument))
        yield frame
    if order == "!cut":
        raise ConnectionError("told to cut the connection")


def _frames(body: AnyBody, text: str, is_refusal: bool) -> Iterator[str]:
    if isinstance(body, ResponsesBody):
        return responses_events(body, text, is_refusal)
    return chat_events(body, text, is_refusal)


def _failed(body: AnyBody, code: str, message: str) -> str:
    error = {"code": code, "message": message}
    if isinstance(body, ChatBody):
        return event({"error": error})
    response = {"id": "resp_1", "object": "response", "status": "failed", "output": [], "error": error}
    return event({"type": "response.failed", "sequence_number": 9, "response": response})


def _error(status: int, message: str, code: str | None = None) -> Response:
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": code}
    return JSONResponse({"error": error}, status)


def _json_or_none(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except ValueError:
        return None


def create_app(server: OpenAIServer) -> Starlette:
    """Compose the application."""
    routes = [Route(path, server.answer, methods=["POST"]) for path in PATHS]
    routes += [Route("/test/requests", server.list_requests), Route("/test/disconnect", server.await_disconnect)]
    return Starlette(routes=routes)


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until SIGTERM or SIGINT."""
    parser = argparse.ArgumentParser(prog="python -m tiny_harness.testing.openai_server")
    parser.add_argument("--port", type=int, default=0, help="0 picks a free one")
    parser.add_argument("--fail-first", type=int, default=0, metavar="N")
    parser.add_argument("--fail-status", type=int, default=500, metavar="STATUS")
    parser.add_argument("--require-key", metavar="KEY")
    options = parser.parse_args(arguments)
    app = create_app(OpenAIServer(options.fail_first, options.fail_status, options.require_key))
    with socket.create_server(("127.0.0.1", options.port)) as listener:
        print(f"listening on http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
        config = uvicorn.Config(app, log_level="critical", lifespan="off", timeout_graceful_shutdown=1)
        uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
