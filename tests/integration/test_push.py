"""Notifications over real HTTP from a whole harness: in order, apart from the task, to whom may be told."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from a2a import types as a2a
from a2a.client import Client, ClientConfig, create_client
from a2a.utils.errors import PushNotificationNotSupportedError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from tests.security.harness import PATIENCE_S, Harness, Person, whole_harness
from tiny_harness.ext import stream
from tiny_harness.ids import new_id
from tiny_harness.push import VARIABLE
from tiny_harness.seal import make_key
from tiny_harness.web_server import bind_tcp, serving
from tiny_harness_engine.activities import deliver

Json = dict[str, Any]

ALLOWED = {"push": {"allow_hosts": ("127.0.0.1",)}}

pytestmark = pytest.mark.timeout(180)


class Receiver:
    """A web server that is told things, and answers as it is told to."""

    def __init__(self) -> None:
        self.got: list[tuple[dict[str, str], Json]] = []
        self.answer: Callable[[int], Response] = lambda _count: Response(status_code=204)
        self.count = 0
        self.url = ""
        self.gate = asyncio.Event()
        self.gate.set()
        self._news = asyncio.Condition()

    async def hear(self, request: Request) -> Response:
        """Take a notification; what is not answered with success was not taken."""
        self.count += 1
        await self.gate.wait()
        answer = self.answer(self.count)
        if answer.status_code < 300:
            self.got.append((dict(request.headers), await request.json()))
        async with self._news:
            self._news.notify_all()
        return answer

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until something holds, looked at after each notification."""
        async with asyncio.timeout(PATIENCE_S), self._news:
            await self._news.wait_for(holds)

    @property
    def seqs(self) -> list[int]:
        """The numbers of the events that it was told, in order."""
        return [int(metadata_of(body)[stream.KEY]["seq"]) for _, body in self.got]

    @property
    def states(self) -> list[str]:
        """The states that it was told, in order."""
        return [next(iter(body.values()))["status"]["state"].removeprefix("TASK_STATE_") for _, body in self.got]


def metadata_of(body: Json) -> Json:
    return next(iter(body.values()))["metadata"]


@asynccontextmanager
async def receiving() -> AsyncGenerator[Receiver]:
    receiver = Receiver()
    tcp = bind_tcp("127.0.0.1", 0)
    receiver.url = f"http://127.0.0.1:{tcp.getsockname()[1]}/hook?x=1"
    app = Starlette(routes=[Route("/hook", receiver.hear, methods=["POST"])])
    async with serving(app, None, tcp):
        yield receiver


@pytest.fixture
async def receiver() -> AsyncGenerator[Receiver]:
    async with receiving() as receiver:
        yield receiver


@pytest.fixture
async def harness(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Harness]:
    monkeypatch.setenv(VARIABLE, make_key())
    async with whole_harness(tmp_path, ALLOWED) as harness:
        yield harness


def stored(folder: Path) -> bytes:
    """All that the store has written to its files."""
    return b"".join(file.read_bytes() for file in folder.rglob("store.db*"))


@asynccontextmanager
async def official_client(harness: Harness, binding: str) -> AsyncGenerator[Client]:
    headers = {"Authorization": f"Bearer {harness.token}"}
    async with httpx.AsyncClient(headers=headers, timeout=PATIENCE_S) as http:
        settings = ClientConfig(httpx_client=http, supported_protocol_bindings=[binding])
        async with await create_client(harness.url, settings) as client:
            yield client


async def ask(person: Person, task_id: str, url: str, **more: Any) -> Json:
    """Ask to be told; the answer."""
    return (await person.call("CreateTaskPushNotificationConfig", taskId=task_id, url=url, **more)).json()


async def test_a_receiver_is_told_all_in_order_with_its_token_and_no_secret_is_read_back(
    harness: Harness, receiver: Receiver, tmp_path: Path
) -> None:
    ann = harness.person("ann")
    task_id = (await ann.say("hello")).task_id
    secrets = {"token": "a-token", "authentication": {"scheme": "Basic", "credentials": "a-credential"}}
    made = (await ask(ann, task_id, receiver.url, id="mine", **secrets))["result"]
    assert made == {"taskId": task_id, "id": "mine", "url": receiver.url}
    await ann.say("again", task_id)
    await ann.control("complete", task_id)
    await receiver.until(lambda: receiver.states[-1:] == ["COMPLETED"])
    assert receiver.seqs == list(range(receiver.seqs[0], receiver.seqs[-1] + 1))
    assert receiver.states == ["WORKING", "INPUT_REQUIRED", "COMPLETED"]
    headers = receiver.got[0][0]
    assert headers["x-a2a-notification-token"] == "a-token"
    assert headers["authorization"] == "Basic a-credential"
    assert headers["content-type"] == "application/a2a+json"
    for method in ("GetTaskPushNotificationConfig", "ListTaskPushNotificationConfigs"):
        told = (await ann.call(method, taskId=task_id, id="mine")).text
        assert receiver.url in told
        assert "a-token" not in told
        assert "a-credential" not in told
    kept = stored(tmp_path)
    assert receiver.url.encode() in kept
    assert b"a-token" not in kept
    assert b"a-credential" not in kept


async def test_a_message_that_is_sent_again_brings_its_configuration_once(harness: Harness, receiver: Receiver) -> None:
    ann = harness.person("ann")
    task_id = (await ann.say("hello")).task_id
    message = {"messageId": new_id(), "role": "ROLE_USER", "parts": [{"text": "again"}], "taskId": task_id}
    wanted = {"taskPushNotificationConfig": {"url": receiver.url}}
    for _ in range(2):
        assert "result" in (await ann.call("SendMessage", message=message, configuration=wanted)).json()
    listed = (await ann.call("ListTaskPushNotificationConfigs", taskId=task_id)).json()["result"]["configs"]
    assert len(listed) == 1


async def test_a_first_message_can_bring_its_configuration(harness: Harness, receiver: Receiver) -> None:
    message = {"messageId": new_id(), "role": "ROLE_USER", "parts": [{"text": "hello"}]}
    wanted = {"taskPushNotificationConfig": {"url": receiver.url, "token": "t"}}
    sent = await harness.person("ann").call("SendMessage", message=message, configuration=wanted)
    assert sent.json()["result"]["task"]["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    await receiver.until(lambda: receiver.states[-1:] == ["INPUT_REQUIRED"])


@pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON"])
async def test_the_official_client_makes_reads_lists_and_deletes_them(
    harness: Harness, receiver: Receiver, binding: str
) -> None:
    async with official_client(harness, binding) as client:
        brought = a2a.TaskPushNotificationConfig(id="a", url=receiver.url, token="t")
        message = a2a.Message(message_id=new_id(), role=a2a.Role.ROLE_USER, parts=[a2a.Part(text="hello")])
        wanted = a2a.SendMessageConfiguration(task_push_notification_config=brought)
        sent = a2a.SendMessageRequest(message=message, configuration=wanted)
        events = [event async for event in client.send_message(sent)]
        task_id = events[0].task.id
        await receiver.until(lambda: receiver.states[-1:] == ["INPUT_REQUIRED"])
        mine = a2a.TaskPushNotificationConfig(task_id=task_id, id="b", url=receiver.url)
        assert await client.create_task_push_notification_config(mine) == mine
        named = a2a.GetTaskPushNotificationConfigRequest(task_id=task_id, id="b")
        assert await client.get_task_push_notification_config(named) == mine
        of_task = a2a.ListTaskPushNotificationConfigsRequest(task_id=task_id)
        listed = await client.list_task_push_notification_configs(of_task)
        assert [config.id for config in listed.configs] == ["a", "b"]
        deleting = a2a.DeleteTaskPushNotificationConfigRequest(task_id=task_id, id="a")
        for _ in range(2):
            await client.delete_task_push_notification_config(deleting)
        assert list((await client.list_task_push_notification_configs(of_task)).configs) == [mine]


@pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON"])
async def test_without_a_key_there_is_no_push_and_the_official_client_is_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, binding: str
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    async with whole_harness(tmp_path, ALLOWED) as harness, official_client(harness, binding) as client:
        card = (await harness.person("ann").get("/.well-known/agent-card.json")).json()
        assert not card["capabilities"].get("pushNotifications", False)
        with pytest.raises(PushNotificationNotSupportedError):
            await client.create_task_push_notification_config(a2a.TaskPushNotificationConfig(task_id="t", url="x"))


async def test_one_that_does_not_answer_holds_up_neither_the_task_nor_another_receiver(
    harness: Harness, receiver: Receiver
) -> None:
    ann = harness.person("ann")
    task_id = (await ann.say("hello")).task_id
    async with receiving() as slow:
        slow.gate.clear()
        await ask(ann, task_id, slow.url, id="a")
        await ask(ann, task_id, receiver.url, id="b")
        await ann.say("again", task_id)
        await receiver.until(lambda: receiver.states == ["WORKING", "INPUT_REQUIRED"])
        assert slow.got == []
        slow.gate.set()
        await slow.until(lambda: slow.states == ["WORKING", "INPUT_REQUIRED"])


async def test_what_a_receiver_does_not_take_is_told_again_in_order_and_holds_nobody_up(
    harness: Harness, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deliver, "FIRST_PAUSE_S", 0.05)
    answers = {1: 500, 2: 503, 4: 429, 5: 302}

    def answer(count: int) -> Response:
        status = answers.get(count, 200)
        return RedirectResponse("http://127.0.0.1:1/") if status == 302 else Response(status_code=status)

    receiver.answer = answer
    ann = harness.person("ann")
    task_id = (await ann.say("hello")).task_id
    await ask(ann, task_id, receiver.url)
    assert (await ann.say("again", task_id)).words == "You said: again"
    await receiver.until(lambda: receiver.states == ["WORKING", "INPUT_REQUIRED"])
    assert receiver.count == 6


async def test_a_receiver_that_is_gone_or_never_there_is_disabled_and_counted(
    harness: Harness, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deliver, "FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(deliver, "LONGEST_PAUSE_S", 0.02)
    monkeypatch.setattr(deliver, "DISABLED_AFTER", 5)
    receiver.answer = lambda _count: Response(status_code=410)
    ann = harness.person("ann")
    task_id = (await ann.say("hello")).task_id
    await ask(ann, task_id, receiver.url, id="gone")
    async with receiving() as other:
        nobody = other.url
    await ask(ann, task_id, nobody, id="nobody")
    await ann.say("again", task_id)

    async with asyncio.timeout(PATIENCE_S):
        while (await ann.get("/_monitor")).json()["push"] != {"disabled": 2}:  # noqa: ASYNC110 - as a person looks
            await asyncio.sleep(0.1)
    assert receiver.count == 1
    receiver.answer = lambda _count: Response(status_code=200)
    await ask(ann, task_id, receiver.url, id="gone")
    await ann.say("once more", task_id)
    await receiver.until(lambda: receiver.states[-1:] == ["INPUT_REQUIRED"])
    assert receiver.seqs == list(range(receiver.seqs[0], receiver.seqs[-1] + 1)), "asked for again, it goes on"


async def test_each_sees_their_own_and_what_is_others_is_as_if_it_were_not_there(
    harness: Harness, receiver: Receiver
) -> None:
    ann, bob, eve = (harness.person(name) for name in ("ann", "bob", "eve"))
    task_id = (await ann.say("hello")).task_id
    await ann.say("/invite bob reporter", task_id)
    await ann.say("/invite wat watcher", task_id)
    await ask(ann, task_id, receiver.url, id="x")
    others = (await bob.call("GetTaskPushNotificationConfig", taskId=task_id, id="x")).json()["error"]
    missing = (await bob.call("GetTaskPushNotificationConfig", taskId=task_id, id="y")).json()["error"]
    assert others == missing
    assert (await bob.call("ListTaskPushNotificationConfigs", taskId=task_id)).json()["result"] == {}
    await bob.call("DeleteTaskPushNotificationConfig", taskId=task_id, id="x")
    assert "result" in (await ann.call("GetTaskPushNotificationConfig", taskId=task_id, id="x")).json()
    assert (await ask(eve, task_id, receiver.url))["error"]["code"] == -32001
    refused = (await ask(harness.person("wat"), task_id, receiver.url))["error"]
    assert refused["data"][0]["metadata"]["code"] == "role_not_permitted"


HOSTILE: tuple[Json, ...] = (
    {"url": "http://10.0.0.1/"},
    {"url": "https://169.254.169.254/latest"},
    {"url": "https://[::127.0.0.1]/"},
    {"url": "http://localhost:1/"},
    {"url": "file:///etc/passwd"},
    {"url": ""},
    {"token": "a\r\nX-Evil: 1"},
    {"token": "x" * 5_000},
    {"id": "i" * 200},
    {"id": "i\0"},
)


async def test_what_must_not_be_asked_for_is_refused_with_the_field_and_sends_no_message(
    harness: Harness, receiver: Receiver
) -> None:
    ann = harness.person("ann")
    task_id = (await ann.say("hello")).task_id
    for config in HOSTILE:
        wanted = {"url": receiver.url, **config}
        error = (await ask(ann, task_id, **wanted))["error"]
        assert error["code"] == -32602, config
        assert error["data"][0]["metadata"]["field"].startswith("taskPushNotificationConfig")
        message = {"messageId": new_id(), "role": "ROLE_USER", "parts": [{"text": "no"}], "taskId": task_id}
        brought = {"taskPushNotificationConfig": wanted}
        assert "error" in (await ann.call("SendMessage", message=message, configuration=brought)).json(), config
    task = await ann.task(task_id)
    assert all(part["text"] != "no" for said in task["history"] for part in said["parts"])
    assert (await ann.call("ListTaskPushNotificationConfigs", taskId=task_id)).json()["result"] == {}


async def test_nobody_has_more_of_them_than_a_few(harness: Harness, receiver: Receiver) -> None:
    ann = harness.person("ann")
    task_id = (await ann.say("hello")).task_id
    answers = [await ask(ann, task_id, receiver.url, id=str(number)) for number in range(11)]
    assert ["error" in answer for answer in answers] == [False] * 10 + [True]
    assert "result" in await ask(ann, task_id, receiver.url, id="0"), "one of them may be replaced"
    message = {"messageId": new_id(), "role": "ROLE_USER", "parts": [{"text": "no"}], "taskId": task_id}
    wanted = {"taskPushNotificationConfig": {"url": receiver.url}}
    assert "error" in (await ann.call("SendMessage", message=message, configuration=wanted)).json()
    task = (await ann.call("GetTask", id=task_id)).json()["result"]
    assert all(part["text"] != "no" for said in task["history"] for part in said["parts"]), "and the message is not in"


async def test_what_happened_while_no_engine_was_there_is_told_by_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, receiver: Receiver
) -> None:
    monkeypatch.setenv(VARIABLE, make_key())
    receiver.answer = lambda _count: Response(status_code=503)
    async with whole_harness(tmp_path, ALLOWED) as first:
        ann = first.person("ann")
        task_id = (await ann.say("hello")).task_id
        await ask(ann, task_id, receiver.url)
        await ann.say("again", task_id)
        await receiver.until(lambda: receiver.count > 0)
    receiver.answer = lambda _count: Response(status_code=200)
    async with whole_harness(tmp_path, ALLOWED):
        await receiver.until(lambda: receiver.states == ["WORKING", "INPUT_REQUIRED"])


async def test_a_card_promises_push_where_there_is_a_key(harness: Harness) -> None:
    card = (await harness.person("ann").get("/.well-known/agent-card.json")).json()
    assert card["capabilities"]["pushNotifications"] is True
