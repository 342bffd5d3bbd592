"""The official clients with their default settings: all that they need of us is an HTTP header."""

import asyncio
import json
import os
import shutil
from collections.abc import AsyncGenerator, Awaitable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
from a2a.client import A2AClientTimeoutError, Client, ClientConfig, create_client
from a2a.helpers import new_text_message
from a2a.types import (
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    Message,
    Part,
    Role,
    SendMessageRequest,
    StreamResponse,
    SubscribeToTaskRequest,
    Task,
    TaskState,
)
from a2a.utils import errors

from tests.npm import npm_folder, run
from tests.served import Served
from tests.tools import require_tool

BINDINGS: Final = ("JSONRPC", "HTTP+JSON")
FOLDER: Final = Path(__file__).parent

both_bindings = pytest.mark.parametrize("binding", BINDINGS)


@asynccontextmanager
async def official_client(served: Served, binding: str, **config: Any) -> AsyncGenerator[Client]:
    """The Python client as its documentation shows it; the header is all that is added."""
    async with httpx.AsyncClient(headers=served.authorization) as http:
        # JSON-RPC is what it speaks when told nothing.
        bindings = [] if binding == "JSONRPC" else [binding]
        settings = ClientConfig(httpx_client=http, supported_protocol_bindings=bindings, **config)
        async with await create_client(served.url, settings) as client:
            yield client


def words_from(text: str, task_id: str = "") -> SendMessageRequest:
    message = new_text_message(text, role=Role.ROLE_USER)
    message.task_id = task_id
    return SendMessageRequest(message=message)


async def say(client: Client, text: str, task_id: str = "") -> list[StreamResponse]:
    return [event async for event in client.send_message(words_from(text, task_id))]


def seen(event: StreamResponse) -> tuple[str, str, str]:
    """An event's kind, its state, and the words of its status."""
    kind = event.WhichOneof("payload") or ""
    status = getattr(event, kind).status
    return kind, TaskState.Name(status.state).removeprefix("TASK_STATE_"), words(status.message)


def words(message: Message) -> str:
    return "".join(part.text for part in message.parts)


@both_bindings
async def test_the_python_client_holds_a_conversation(served: Served, binding: str) -> None:
    async with official_client(served, binding) as client, asyncio.timeout(30):
        first = await say(client, "hello")
        task_id = first[0].task.id
        assert [seen(event) for event in first] == [
            ("task", "WORKING", ""),
            ("status_update", "INPUT_REQUIRED", "1: hello"),
        ]
        second = await say(client, "and again", task_id)
        assert [seen(event) for event in second] == [
            ("task", "WORKING", ""),
            ("status_update", "INPUT_REQUIRED", "2: and again"),
        ]
        got = await client.get_task(GetTaskRequest(id=task_id))
        assert [words(message) for message in got.history] == ["hello", "1: hello", "and again", "2: and again"]
        assert [message.role for message in got.history] == [Role.ROLE_USER, Role.ROLE_AGENT] * 2
        short = await client.get_task(GetTaskRequest(id=task_id, history_length=1))
        assert [words(message) for message in short.history] == ["2: and again"]
        listed = await client.list_tasks(ListTasksRequest(context_id=got.context_id))
        assert [(task.id, task.status.state) for task in listed.tasks] == [
            (task_id, TaskState.TASK_STATE_INPUT_REQUIRED)
        ]
        canceled = await client.cancel_task(CancelTaskRequest(id=task_id))
        assert canceled.status.state == TaskState.TASK_STATE_CANCELED


@both_bindings
async def test_a_subscription_lives_through_input_required_until_cancel_ends_it(served: Served, binding: str) -> None:
    async with official_client(served, binding) as client, asyncio.timeout(30):
        task_id = (await say(client, "hello"))[0].task.id
        events = client.subscribe(SubscribeToTaskRequest(id=task_id))
        followed = [seen(await anext(events))]
        await say(client, "two", task_id)
        await say(client, "three", task_id)
        await client.cancel_task(CancelTaskRequest(id=task_id))
        followed += [seen(event) async for event in events]
    assert followed == [
        ("task", "INPUT_REQUIRED", "1: hello"),
        ("status_update", "WORKING", ""),
        ("status_update", "INPUT_REQUIRED", "2: two"),
        ("status_update", "WORKING", ""),
        ("status_update", "INPUT_REQUIRED", "3: three"),
        ("status_update", "CANCELED", ""),
    ]


@both_bindings
async def test_a_client_that_does_not_stream_gets_the_reply_in_one_answer(served: Served, binding: str) -> None:
    async with official_client(served, binding, streaming=False) as client, asyncio.timeout(30):
        [answer] = await say(client, "hello")
        assert seen(answer) == ("task", "INPUT_REQUIRED", "1: hello")
    async with official_client(served, binding, streaming=False, polling=True) as client, asyncio.timeout(30):
        [answer] = await say(client, "think for a second", answer.task.id)
        assert seen(answer) == ("task", "WORKING", "")


@both_bindings
async def test_refusals_come_as_the_errors_of_the_protocol(served: Served, binding: str) -> None:
    async with official_client(served, binding) as client, asyncio.timeout(30):
        task_id = (await say(client, "hello"))[0].task.id
        await client.cancel_task(CancelTaskRequest(id=task_id))
        file = Message(message_id="f", role=Role.ROLE_USER, parts=[Part(url="https://example.com/a.png")])
        refused: list[tuple[type[errors.A2AError], Awaitable[Any]]] = [
            (errors.TaskNotFoundError, client.get_task(GetTaskRequest(id="unknown"))),
            (errors.TaskNotFoundError, client.cancel_task(CancelTaskRequest(id="unknown"))),
            (errors.TaskNotFoundError, say(client, "hello?", "unknown")),
            (errors.TaskNotFoundError, first_event(client, "unknown")),
            (errors.TaskNotCancelableError, client.cancel_task(CancelTaskRequest(id=task_id))),
            (errors.UnsupportedOperationError, say(client, "hello?", task_id)),
            (errors.UnsupportedOperationError, first_event(client, task_id)),
            (errors.InvalidParamsError, say(client, "")),
            (errors.InvalidParamsError, client.list_tasks(ListTasksRequest(page_size=1_000))),
            (errors.ContentTypeNotSupportedError, last_event(client, SendMessageRequest(message=file))),
        ]
        for expected, call in refused:
            with pytest.raises(errors.A2AError) as caught:
                await call
            assert caught.type is expected


async def first_event(client: Client, task_id: str) -> StreamResponse:
    return await anext(client.subscribe(SubscribeToTaskRequest(id=task_id)))


async def last_event(client: Client, request: SendMessageRequest) -> StreamResponse:
    return [event async for event in client.send_message(request)][-1]


@pytest.mark.slow
async def test_no_default_timeout_strikes_while_the_model_is_silent_for_20_s(served: Served) -> None:
    async def ask(binding: str) -> list[tuple[str, str, str]]:
        async with official_client(served, binding) as client:
            return [seen(event) for event in await say(client, "be silent for 20 s")]

    async def follow(binding: str) -> tuple[str, str, str]:
        async with official_client(served, binding) as client:
            task: Task = (await say(client, "hello"))[0].task
            async with official_client(served, binding, streaming=False, polling=True) as other:
                await say(other, "be silent for 20 s", task.id)
            events = client.subscribe(SubscribeToTaskRequest(id=task.id))
            last = [await anext(events), await anext(events)][-1]
            await client.cancel_task(CancelTaskRequest(id=task.id))
            assert [seen(event)[1] async for event in events] == ["CANCELED"]
            return seen(last)

    try:
        async with asyncio.timeout(60):
            *asked, first, second = await asyncio.gather(*map(ask, BINDINGS), *map(follow, BINDINGS))
    except A2AClientTimeoutError:
        pytest.fail("the client's default timeout of 5 s struck")
    reply = ("status_update", "INPUT_REQUIRED", "That was long.")
    assert asked == [[("task", "WORKING", ""), reply]] * 2
    assert first == second == reply


@both_bindings
async def test_the_javascript_client_holds_the_same_conversation(served: Served, binding: str) -> None:
    saw = await asyncio.to_thread(run_js, served, binding)
    turn = ["statusUpdate", "TASK_STATE_WORKING", None]
    assert saw["first"] == [["task", "TASK_STATE_WORKING", None], reply("1: hello")]
    assert saw["second"] == [["task", "TASK_STATE_WORKING", None], reply("2: and again")]
    assert saw["blocking"] == "3: once more"
    assert saw["got"] == [
        "TASK_STATE_INPUT_REQUIRED",
        ["hello", "1: hello", "and again", "2: and again", "once more", "3: once more"],
    ]
    assert saw["listed"] == [True]
    assert saw["canceled"] == "TASK_STATE_CANCELED"
    assert saw["subscribed"] == [
        ["task", "TASK_STATE_INPUT_REQUIRED", "1: hello"],
        turn,
        reply("2: and again"),
        turn,
        reply("3: once more"),
        ["statusUpdate", "TASK_STATE_CANCELED", None],
    ]
    assert saw["refusals"] == {
        "get": "TaskNotFoundError",
        "send": "TaskNotFoundError",
        "sendToEnded": "UnsupportedOperationError",
        "streamToEnded": "UnsupportedOperationError",
        "subscribeToEnded": "UnsupportedOperationError",
        "cancelAgain": "TaskNotCancelableError",
        "empty": "RequestMalformedError",
    }


def reply(text: str) -> list[str]:
    return ["statusUpdate", "TASK_STATE_INPUT_REQUIRED", text]


def run_js(served: Served, binding: str) -> dict[str, Any]:
    """Hold the conversation in Node; what it saw."""
    node, folder = require_tool("node"), js_folder()
    # Node looks for packages beside the program, so the program goes to the packages.
    program = Path(shutil.copy(FOLDER / "js_client.mjs", folder / f"client-{os.getpid()}.mjs"))
    try:
        done = run(node, str(program), served.url, binding, TOKEN=served.token)
    finally:
        program.unlink()
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def js_folder() -> Path:
    """Find the folder with the JS client."""
    return npm_folder(FOLDER / "package.json")
