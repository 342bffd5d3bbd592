"""A whole harness, gateway and engine, on a loopback port, and people who talk to it in plain A2A."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from starlette.types import Receive, Scope, Send

from tiny_harness import running_harness
from tiny_harness.background import in_background
from tiny_harness.envelope import control_part
from tiny_harness.ext import commands
from tiny_harness.ext import task as task_ext
from tiny_harness.ids import new_id
from tiny_harness.settings import Settings
from tiny_harness.testing.openai_server import OpenAIServer, create_app
from tiny_harness.web_server import bind_tcp

PATIENCE_S = 60
MODELS = ("small", "big")

Json = dict[str, Any]


@dataclass(frozen=True)
class Said:
    """What came of a message: an error, or the events of its stream."""

    status: int
    error: Json | None
    events: tuple[Json, ...] = ()

    @property
    def task_id(self) -> str:
        """The task that it went to."""
        assert self.error is None, self.error
        return self.events[0]["task"]["id"]

    @property
    def words(self) -> str:
        """The words of the last event."""
        message = self.events[-1]["statusUpdate"]["status"].get("message", {"parts": [{"text": ""}]})
        return message["parts"][0]["text"]

    @property
    def data(self) -> Json:
        """The last event's words for programs."""
        return self.events[-1]["statusUpdate"]["status"]["message"]["parts"][1]["data"]

    @property
    def command(self) -> Json:
        """What the last event says of a command; empty if it answers none."""
        return self.events[-1].get("statusUpdate", {}).get("metadata", {}).get(commands.KEY, {})

    @property
    def outcome(self) -> str:
        """What became of the command."""
        assert self.error is None, self.error
        return self.command.get("outcome", "no command")

    @property
    def refusal(self) -> str:
        """The code of a refusal, or why there is none of ours."""
        assert self.error is not None, self.events
        details = self.error.get("data") or []
        info = next((one for one in details if one["@type"].endswith("ErrorInfo")), {})
        return info.get("metadata", {}).get("code") or info.get("reason", "")


@dataclass
class Person:
    """Somebody who talks to a harness; without a name, nobody."""

    http: httpx.AsyncClient
    url: str
    headers: dict[str, str]

    async def say(self, text: str, task_id: str = "", **fields: Any) -> Said:
        """Send words, or a command, and read the stream to its end."""
        return await self.send([{"text": text}], task_id, **fields)

    async def send(self, parts: list[Json], task_id: str = "", **fields: Any) -> Said:
        """Send a message and read the stream to its end."""
        message = {"messageId": new_id(), "role": "ROLE_USER", "parts": parts, **fields}
        if task_id:
            message["taskId"] = task_id
        answer = await self.call("SendStreamingMessage", message=message)
        if answer.headers["content-type"].startswith("text/event-stream"):
            lines = [line[6:] for line in answer.text.splitlines() if line.startswith("data: ")]
            return Said(answer.status_code, None, tuple(json.loads(line)["result"] for line in lines))
        return Said(answer.status_code, answer.json()["error"])

    async def control(self, action: Any, task_id: str) -> Said:
        """Complete or interrupt."""
        return await self.send([control_part(action)], task_id)

    async def cancel(self, task_id: str) -> Said:
        """Cancel."""
        answer = await self.call("CancelTask", id=task_id)
        return Said(answer.status_code, answer.json().get("error"))

    async def call(self, method: str, **params: Any) -> httpx.Response:
        """Call an operation."""
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return await self.http.post(f"{self.url}/rpc", json=body, headers=self.headers)

    async def get(self, path: str) -> httpx.Response:
        """Read a page."""
        return await self.http.get(self.url + path, headers=self.headers)

    async def task(self, task_id: str) -> Json:
        """Get a task."""
        return (await self.call("GetTask", id=task_id, historyLength=1_000)).json()["result"]

    async def facts(self, task_id: str) -> Json:
        """Get all of a task that a refusal must leave as it is: state, sub-state, data; not its words."""
        found = await self.task(task_id)
        data = found["metadata"][task_ext.KEY]
        return {"state": found["status"]["state"], "metadata": {key: data[key] for key in sorted(data)}}

    async def until(self, task_id: str, condition: Callable[[Json], bool]) -> None:
        """Wait until a task's facts are as wanted: told by its stream, bounded in time."""
        body = {"jsonrpc": "2.0", "id": 1, "method": "SubscribeToTask", "params": {"id": task_id}}
        async with (
            asyncio.timeout(PATIENCE_S),
            self.http.stream("POST", f"{self.url}/rpc", json=body, headers=self.headers) as answer,
        ):
            async for line in answer.aiter_lines():
                if line.startswith("data: ") and condition(await self.facts(task_id)):
                    return


@dataclass
class Harness:
    """A running harness."""

    url: str
    token: str
    http: httpx.AsyncClient
    model: "RecordingModel"

    def person(self, name: str) -> Person:
        """Somebody who holds the token."""
        headers = {"Authorization": f"Bearer {self.token}", "X-Participant-Id": name, "A2A-Version": "1.0"}
        return Person(self.http, self.url, headers)

    def nobody(self) -> Person:
        """Somebody who does not."""
        return Person(self.http, self.url, {"X-Participant-Id": "ann", "A2A-Version": "1.0"})


@dataclass
class RecordingModel:
    """A server that speaks OpenAI's APIs and keeps every body as it came."""

    server: OpenAIServer
    url: str = ""
    bodies: list[bytes] = field(default_factory=list[bytes])

    def __post_init__(self) -> None:
        self._app = create_app(self.server)
        self._gate, self._asked = asyncio.Event(), asyncio.Event()
        self._gate.set()

    def hold(self) -> None:
        """Answer nobody from now on."""
        self._gate.clear()
        self._asked.clear()

    def release(self) -> None:
        """Answer again."""
        self._gate.set()

    async def until_asked(self) -> None:
        """Wait until somebody waits for an answer."""
        async with asyncio.timeout(PATIENCE_S):
            await self._asked.wait()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on what it hears."""
        pieces: list[bytes] = []

        async def listening() -> Any:
            message = await receive()
            pieces.append(message.get("body", b""))
            if message["type"] == "http.request" and not message.get("more_body"):
                self.bodies.append(b"".join(pieces))
                self._asked.set()
                await self._gate.wait()
            return message

        await self._app(scope, listening, send)

    @property
    def heard(self) -> str:
        """All that any model was told, as one text."""
        return "\n".join(json.dumps(json.loads(body), ensure_ascii=False) for body in self.bodies)


class QuietServer(uvicorn.Server):
    """A server that leaves the process's signals alone."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


@asynccontextmanager
async def recording_model() -> AsyncGenerator[RecordingModel]:
    """Serve a model that says `You said: <the last words>`, and listens."""
    model = RecordingModel(OpenAIServer())
    with bind_tcp("127.0.0.1", 0) as listener:
        listener.listen()  # whoever calls before the server runs waits
        model.url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        config = uvicorn.Config(model, log_config=None, lifespan="off", timeout_graceful_shutdown=1)
        server = QuietServer(config)

        def stop() -> None:
            server.should_exit = True

        async with in_background(server.serve([listener]), stop):
            yield model


@asynccontextmanager
async def whole_harness(
    folder: Path, sections: Mapping[str, Json] | None = None, folders: Sequence[Path] = (), **more: Any
) -> AsyncGenerator[Harness]:
    """Run a harness whose model listens, with models to choose from.

    Args:
        folder: For its store.
        sections: Of the configuration, each over the default one.
        folders: Plugin directories.
        more: Arguments of `running_harness`.
    """
    async with recording_model() as model, httpx.AsyncClient(timeout=PATIENCE_S) as http:
        given: dict[str, Json] = {
            "store": {"sqlite_path": folder / "store.db"},
            "model": {"provider": "openai"},
            "openai": {"base_url": model.url, "model": "small", "models": MODELS},
            "server": {"bind": "127.0.0.1:0", "participant": "ann", "rate_limit_per_minute": 100_000},
        }
        for name, keys in (sections or {}).items():
            given[name] = {**given.get(name, {}), **keys}
        settings = Settings.model_validate({**given, "plugins": tuple(folders)})
        async with running_harness(settings, serve_tcp=True, **more) as harness:
            assert harness.url is not None
            yield Harness(harness.url, harness.token or "", http, model)
