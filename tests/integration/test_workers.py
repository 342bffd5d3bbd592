"""Workers at a running harness: over MCP with the official client, over A2A envelopes, and their askers (adr-042)."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.security.harness import PATIENCE_S, Harness, Person, whole_harness
from tiny_harness.envelope import MEDIA_TYPE, WorkerUpdate, control_part, update_part
from tiny_harness.ext import supervision

Json = dict[str, Any]

pytestmark = pytest.mark.timeout(120)


@dataclass
class Desk:
    """A worker's agent at the harness's MCP endpoint."""

    client: Client

    async def use(self, tool: str, **arguments: Any) -> str:
        """Call a tool that works."""
        text, is_error = await self.try_to(tool, **arguments)
        assert not is_error, text
        return text

    async def try_to(self, tool: str, **arguments: Any) -> tuple[str, bool]:
        """Call a tool; its words, and whether they are a refusal."""
        answer = await self.client.call_tool(tool, arguments)
        return answer.content[0].text, bool(answer.is_error)  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]


@asynccontextmanager
async def desk(harness: Harness, name: str, token: str | None = None) -> AsyncGenerator[Desk]:
    """Sit down as a worker."""
    headers = {"Authorization": f"Bearer {token or harness.token}", "X-Participant-Id": name}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=httpx2.Timeout(PATIENCE_S)) as http,
        Client(streamable_http_client(f"{harness.url}/mcp", http_client=http), read_timeout_seconds=PATIENCE_S) as mcp,
    ):
        yield Desk(mcp)


@pytest.fixture(scope="module")
async def harness(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Harness]:
    async with whole_harness(tmp_path_factory.mktemp("workers")) as running:
        yield running


async def give(asker: Person, worker: str, goal: str, **fields: Any) -> str:
    """Give a task to a worker; its id."""
    part = {"data": {"kind": "task", "payload": {"worker": worker, "goal": goal}}, "mediaType": MEDIA_TYPE}
    message = {"messageId": f"m-{worker}-{goal}", "role": "ROLE_USER", "parts": [{"text": goal}, part], **fields}
    answer = await asker.call("SendMessage", message=message, configuration={"returnImmediately": True})
    return answer.json()["result"]["task"]["id"]


async def until(asker: Person, task_id: str, word: str) -> Json:
    """Wait until a task is in a state; the task."""
    async with asyncio.timeout(PATIENCE_S):
        if not (await asker.task(task_id))["status"]["state"].endswith(word):
            await asker.until(task_id, lambda facts: facts["state"].endswith(word))
    return await asker.task(task_id)


def standing(task: Json) -> Json:
    return task["metadata"][supervision.KEY]


async def test_a_worker_takes_a_task_over_mcp_and_says_how_it_ended(harness: Harness) -> None:
    ann = harness.person("ann")
    async with desk(harness, "mia") as mia:
        tools = {tool.name for tool in (await mia.client.list_tools()).tools}
        assert tools == {"task_update", "task_list", "task_get", "task_ack", "task_send"}
        assert "task_update" in (mia.client.instructions or "")
        assert await mia.use("task_list") == "You have no open task."
        task_id = await give(ann, "mia", "paint the fence")
        await until(ann, task_id, "WORKING")
        assert task_id in await mia.use("task_list")
        shown = await mia.use("task_get", task_id=task_id)
        assert shown.startswith(supervision.INSTRUCTIONS)
        assert "goal: paint the fence" in shown
        await mia.use("task_send", task_id=task_id, text="/status is no command of mine")
        await mia.use("task_update", task_id=task_id, status="done", summary="It is green.")
    ended = await until(ann, task_id, "COMPLETED")
    assert ended["artifacts"][0]["parts"] == [{"text": "It is green."}]
    assert ended["history"][-1]["parts"] == [{"text": "It is green."}]
    assert standing(ended)["last_worker_line"] == "It is green."


async def test_a_worker_that_ends_its_task_on_a_stream_is_shown_its_end(harness: Harness) -> None:
    task_id = await give(harness.person("ann"), "leo", "paint the bench")
    await until(harness.person("ann"), task_id, "WORKING")
    said = await harness.person("leo").send([update_part(WorkerUpdate(status="done", summary="It is red."))], task_id)
    [event] = said.events
    assert event["task"]["status"]["state"] == "TASK_STATE_COMPLETED"
    assert event["task"]["artifacts"][0]["parts"] == [{"text": "It is red."}]


async def test_a_send_that_waits_is_answered_when_the_worker_is_done_or_needs_something(harness: Harness) -> None:
    ann = harness.person("ann")
    part = {"data": {"kind": "task", "payload": {"worker": "wim", "goal": "dig"}}, "mediaType": MEDIA_TYPE}
    message = {"messageId": "dig", "role": "ROLE_USER", "parts": [{"text": "dig"}, part]}
    sending = asyncio.create_task(ann.call("SendMessage", message=message))
    async with desk(harness, "wim") as wim:
        task_id = await first_task(wim)
        await wim.use("task_update", task_id=task_id, status="blocked", summary="How deep?")
        answered = (await sending).json()["result"]["task"]
        assert answered["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
        assert answered["status"]["message"]["parts"] == [{"text": "How deep?"}]
        reply = {"messageId": "deep", "role": "ROLE_USER", "taskId": task_id, "parts": [{"text": "Two metres."}]}
        sending = asyncio.create_task(ann.call("SendMessage", message=reply))
        await until(ann, task_id, "WORKING")
        assert "Two metres." in await wim.use("task_get", task_id=task_id)
        await wim.use("task_update", task_id=task_id, status="failed", summary="Rock.")
        assert (await sending).json()["result"]["task"]["status"]["state"] == "TASK_STATE_FAILED"


async def first_task(worker: Desk) -> str:
    """Wait until a worker has a task; its id."""
    async with asyncio.timeout(PATIENCE_S):
        while (said := await worker.use("task_list")) == "You have no open task.":  # noqa: ASYNC110 - workers poll
            await asyncio.sleep(0.05)
    return said.removeprefix("task ").partition(":")[0]


async def test_only_the_tasks_own_worker_updates_it(harness: Harness) -> None:
    ann = harness.person("ann")
    task_id = await give(ann, "kim", "guard the gate")
    for name in ("ann", "eve"):
        async with desk(harness, name) as other:
            said, is_error = await other.try_to("task_update", task_id=task_id, status="done", summary="So.")
            assert is_error
            assert ("only its worker" in said) == (name == "ann")
            assert ("not found" in said) == (name == "eve")
    refused = await ann.send([update_part(WorkerUpdate(status="done", summary="So."))], task_id)
    assert refused.refusal == "role_not_permitted"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "task_id"),
        ({"task_id": "x", "status": "finished", "summary": "s"}, "status"),
        ({"task_id": "x", "status": "done"}, "summary"),
        ({"task_id": "x", "status": "done", "summary": "s", "surprise": 1}, "surprise"),
        ({"task_id": "x", "status": "done", "summary": "s"}, "not found"),
    ],
)
async def test_a_wrong_call_is_told_in_words(harness: Harness, arguments: Json, words: str) -> None:
    async with desk(harness, "mia") as mia:
        said, is_error = await mia.try_to("task_update", **arguments)
    assert is_error
    assert words in said


async def test_the_endpoint_wants_the_harness_own_credentials(harness: Harness) -> None:
    async with httpx2.AsyncClient() as http:
        answer = await http.post(f"{harness.url}/mcp", json={}, headers={"Authorization": "Bearer wrong"})
    assert answer.status_code == 401


async def test_an_acknowledgement_is_kept_and_closes_nothing(harness: Harness) -> None:
    ann = harness.person("ann")
    task_id = await give(ann, "lou", "count")
    before = await until(ann, task_id, "WORKING")
    answer = await ann.call("AckTask", id=task_id)
    assert standing(answer.json()["result"])["acknowledged"] == ["ann"]
    rest = await ann.http.post(f"{harness.url}/rest/tasks/{task_id}:ack", headers=ann.headers)
    assert rest.json()["id"] == task_id
    after = await ann.task(task_id)
    assert after["status"]["state"] == before["status"]["state"]
    async with desk(harness, "lou") as lou:
        said, is_error = await lou.try_to("task_ack", task_id=task_id)
        assert is_error
        assert "assignee" in said
        await lou.use("task_update", task_id=task_id, status="done", summary="Three.")
    await ann.send([control_part("acknowledge")], task_id)
    assert standing(await ann.task(task_id))["acknowledged"] == ["ann"]


async def test_a_late_message_to_an_expired_task_says_so_and_how_to_go_on(tmp_path: Path) -> None:
    hurry = {"supervision": {"expire_hours": 0.0002, "warn_hours": []}}
    async with whole_harness(tmp_path, hurry) as harness:
        ann = harness.person("ann")
        task_id = await give(ann, "zoe", "wait")
        ended = await until(ann, task_id, "CANCELED")
        assert standing(ended)["expired"]
        late = await ann.say("Are you there?", task_id)
        assert late.error is not None
        assert "expired" in late.error["message"]
        assert "start a new one" in late.error["message"]


async def test_a_worker_gives_a_task_to_another(harness: Harness) -> None:
    async with desk(harness, "mia") as mia, desk(harness, "noa") as noa:
        said = await mia.use("task_send", text="look after the cat", worker="noa")
        task_id = said.rpartition(" ")[2].rstrip(".")
        assert await first_task(noa) == task_id
        await noa.use("task_update", task_id=task_id, status="done", summary="It purrs.")
        await until(harness.person("mia"), task_id, "COMPLETED")
        await mia.use("task_ack", task_id=task_id)
