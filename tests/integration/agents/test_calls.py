"""What a stand-in does at an agent, against the official server on both transports, and against agents in trouble."""

import asyncio
from typing import Any

import pytest
from a2a.types import AgentCard, AgentExtension, SecurityRequirement, SecurityScheme, StringList

from tests.integration.agents.site import (
    PATIENCE_S,
    Site,
    answering,
    answering_json,
    closed_stream,
    cut,
    hanging,
    losing,
    on,
    serving_agent,
)
from tiny_harness.ext import commands, stream
from tiny_harness.settings import AgentSettings
from tiny_harness.states import TaskState
from tiny_harness_engine.agents.agent import RemoteAgent
from tiny_harness_engine.agents.brief import Brief
from tiny_harness_engine.agents.fault import AgentFault
from tiny_harness_engine.core.remote import Seen

BRIEF = Brief(goal="Count the stars", description="All of them.", acceptance_criteria=("there is a number",))
BINDINGS = [("JSONRPC",), ("HTTP+JSON",)]


def agent_at(site: Site, **more: Any) -> RemoteAgent:
    return RemoteAgent(AgentSettings(url=site.url, **{"timeout": 10.0, **more}))


async def fault_of(call: Any) -> AgentFault:
    with pytest.raises(AgentFault) as caught:
        async with asyncio.timeout(PATIENCE_S):
            await call
    return caught.value


@pytest.mark.parametrize("bindings", BINDINGS)
async def test_a_brief_is_sent_followed_and_its_result_read(bindings: tuple[str, ...]) -> None:
    async with serving_agent(bindings=bindings) as site:
        agent = agent_at(site)
        sent = await agent.send("child-1", BRIEF, is_again=False)
        job = await site.desk.job()
        assert sent.remote_id == job.task_id
        assert sent.state in (TaskState.SUBMITTED, TaskState.WORKING)
        assert job.text == "Count the stars\n\nAll of them.\n\nIt is done when:\n- there is a number"
        assert job.message.message_id == "brief:child-1"
        assert job.message.context_id == "child-1"
        assert job.message.metadata[commands.KEY]["literal"] is True
        assert job.message.metadata[stream.KEY]["idempotency_key"] == "child-1"

        following = asyncio.create_task(agent.follow(job.task_id, lambda seen: seen.state.is_terminal))
        await site.until_called("SubscribeToTask")
        await job.done(says="seven", makes="the list")
        async with asyncio.timeout(PATIENCE_S):
            news = await following
        assert news is not None
        assert news.state is TaskState.COMPLETED
        seen = await agent.look(job.task_id)
        assert (seen.state, seen.words) == (TaskState.COMPLETED, "seven\n\nthe list")
        await agent.close()


@pytest.mark.parametrize("bindings", BINDINGS)
async def test_a_task_is_cancelled(bindings: tuple[str, ...]) -> None:
    async with serving_agent(bindings=bindings) as site:
        agent = agent_at(site)
        await agent.send("child-1", BRIEF, is_again=False)
        job = await site.desk.job()
        assert (await agent.cancel(job.task_id)).state is TaskState.CANCELED
        assert site.desk.cancelled == [job.task_id]
        await agent.close()


@pytest.mark.parametrize("bindings", BINDINGS)
async def test_cancelling_a_task_that_has_ended_tells_how(bindings: tuple[str, ...]) -> None:
    async with serving_agent(bindings=bindings) as site:
        agent = agent_at(site)
        await agent.send("child-1", BRIEF, is_again=False)
        job = await site.desk.job()
        await job.done(says="x")
        await _until(agent, job.task_id, TaskState.COMPLETED)
        assert (await agent.cancel(job.task_id)).state is TaskState.COMPLETED
        await agent.close()


async def _until(agent: RemoteAgent, task_id: str, state: TaskState) -> Seen:
    async with asyncio.timeout(PATIENCE_S):
        while (seen := await agent.look(task_id)).state is not state:  # noqa: ASYNC110 - an agent sets no event
            await asyncio.sleep(0.02)
    return seen


@pytest.mark.parametrize("bindings", BINDINGS)
async def test_an_agent_that_does_not_know_a_task_says_gone(bindings: tuple[str, ...]) -> None:
    async with serving_agent(bindings=bindings) as site:
        agent = agent_at(site)
        assert (await fault_of(agent.look("nothing"))).kind == "gone"
        await agent.close()


@pytest.mark.parametrize("bindings", BINDINGS)
async def test_a_brief_whose_answer_was_lost_is_found_and_not_sent_again(bindings: tuple[str, ...]) -> None:
    async with serving_agent(bindings=bindings) as site:
        agent = agent_at(site)
        await agent.send("other", BRIEF, is_again=False)
        sent = await agent.send("child-1", BRIEF, is_again=False)
        found = await agent.send("child-1", BRIEF, is_again=True)
        assert found.remote_id == sent.remote_id
        assert site.count("SendMessage") == 2
        await agent.close()


async def test_a_brief_that_never_arrived_is_sent_again() -> None:
    async with serving_agent() as site:
        agent = agent_at(site)
        site.meddle = on("SendMessage", cut)
        assert (await fault_of(agent.send("child-1", BRIEF, is_again=False))).kind == "doubtful"
        await agent.send("child-1", BRIEF, is_again=True)
        assert len(site.desk.jobs) <= 1
        assert (await site.desk.job()).message.message_id == "brief:child-1"
        await agent.close()


async def test_an_agent_that_lists_no_tasks_is_never_given_a_doubtful_brief_again() -> None:
    async with serving_agent() as site:
        agent = agent_at(site)
        error = {"jsonrpc": "2.0", "id": "1", "error": {"code": -32601, "message": "no such method"}}
        site.meddle = on("ListTasks", then=answering_json(error))
        fault = await fault_of(agent.send("child-1", BRIEF, is_again=True))
        assert fault.kind == "final"
        assert site.count("SendMessage") == 0
        await agent.close()


async def test_a_harness_is_simply_sent_the_same_message_again() -> None:
    def change(card: AgentCard) -> None:
        card.capabilities.extensions.append(AgentExtension(uri=stream.URI))

    async with serving_agent(change_card=change) as site:
        agent = agent_at(site)
        await agent.send("child-1", BRIEF, is_again=True)
        assert "ListTasks" not in site.calls
        await agent.close()


async def test_a_stream_that_is_closed_ends_following_without_news() -> None:
    async with serving_agent() as site:
        agent = agent_at(site)
        await agent.send("child-1", BRIEF, is_again=False)
        job = await site.desk.job()
        site.meddle = on("SubscribeToTask", closed_stream)
        assert await agent.follow(job.task_id, lambda seen: seen.state.is_terminal) is None
        await agent.close()


GARBAGE = {
    "html": answering(200),
    "another task": answering_json(
        {"jsonrpc": "2.0", "id": "1", "result": {"id": "other", "status": {"state": "TASK_STATE_COMPLETED"}}}
    ),
    "no state": answering_json({"jsonrpc": "2.0", "id": "1", "result": {"id": "t", "status": {"state": "DONE"}}}),
    "a list": answering_json([1, 2, 3]),
    "null": answering_json(None),
    "no result": answering_json({"jsonrpc": "2.0", "id": "1"}),
    "text for an object": answering_json({"jsonrpc": "2.0", "id": "1", "result": "yes"}),
    "nested": answering(200, "[" * 100_000 + "]" * 100_000),
    "9 MB": answering(200, "x" * 9 * 1024 * 1024),
    "cut": cut,
    "500": answering(500),
    "401": answering(401),
    "redirect": answering(307, Location="http://127.0.0.1:1/"),
}


@pytest.mark.parametrize("kind", GARBAGE)
async def test_an_answer_that_is_garbage_is_a_fault_with_a_reason(kind: str) -> None:
    async with serving_agent(bindings=("JSONRPC",)) as site:
        agent = agent_at(site)
        site.meddle = on("GetTask", GARBAGE[kind])
        fault = await fault_of(agent.look("t"))
        assert fault.reason
        assert len(fault.reason) <= 300
        await agent.close()


@pytest.mark.parametrize("task_id", ["../../admin", "..", "a b", "a/b", "a?b", "x" * 300, ""])
async def test_a_task_whose_id_would_lead_elsewhere_is_refused(task_id: str) -> None:
    async with serving_agent(bindings=("JSONRPC",)) as site:
        agent = agent_at(site)
        task = {"id": task_id, "contextId": "c", "status": {"state": "TASK_STATE_WORKING"}}
        site.meddle = on("SendMessage", answering_json({"jsonrpc": "2.0", "id": "1", "result": {"task": task}}))
        assert "id that cannot be used" in (await fault_of(agent.send("c", BRIEF, is_again=False))).reason
        await agent.close()


async def test_an_agent_that_answers_with_words_alone_has_done_its_work() -> None:
    async with serving_agent(bindings=("JSONRPC",)) as site:
        agent = agent_at(site)
        message = {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "forty"}]}
        site.meddle = on("SendMessage", answering_json({"jsonrpc": "2.0", "id": "1", "result": {"message": message}}))
        seen = await agent.send("c", BRIEF, is_again=False)
        assert (seen.state, seen.remote_id, seen.words) == (TaskState.COMPLETED, None, "forty")
        await agent.close()


async def test_an_agent_that_hangs_is_given_up_in_time() -> None:
    async with serving_agent() as site:
        agent = agent_at(site, timeout=0.5)
        site.meddle = on("GetTask", hanging)
        assert (await fault_of(agent.look("t"))).kind == "doubtful"
        await agent.close()


async def test_an_agent_that_is_down_did_nothing_and_may_be_asked_again() -> None:
    async with serving_agent() as site:
        pass
    agent = agent_at(site)
    assert (await fault_of(agent.send("c", BRIEF, is_again=False))).kind == "passing"
    await agent.close()


async def test_a_credential_goes_where_the_card_wants_it_and_not_to_the_card(monkeypatch: pytest.MonkeyPatch) -> None:
    def change(card: AgentCard) -> None:
        scheme = SecurityScheme()
        scheme.api_key_security_scheme.name = "X-Desk-Key"
        scheme.api_key_security_scheme.location = "header"
        card.security_schemes["key"].CopyFrom(scheme)
        card.security_requirements.append(SecurityRequirement(schemes={"key": StringList()}))

    monkeypatch.setenv("DESK_TOKEN", "hush")
    async with serving_agent(change_card=change) as site:
        agent = agent_at(site, token_env="DESK_TOKEN")
        await agent.send("c", BRIEF, is_again=False)
        sent = dict(zip(site.calls, site.headers, strict=True))
        assert sent["SendMessage"]["x-desk-key"] == "hush"
        assert "hush" not in str(sent["card"])
        assert "authorization" not in sent["SendMessage"]
        await agent.close()


async def test_a_credential_never_follows_a_redirect_or_a_card_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DESK_TOKEN", "hush")
    async with serving_agent() as thief:

        def change(card: AgentCard) -> None:
            card.supported_interfaces[0].url = thief.url + "/rpc"
            del card.supported_interfaces[1:]

        async with serving_agent(change_card=change) as site:
            agent = agent_at(site, token_env="DESK_TOKEN")
            fault = await fault_of(agent.send("c", BRIEF, is_again=False))
            assert fault.kind == "final"
            assert "another server" in fault.reason
            await agent.close()
        async with serving_agent() as site:
            agent = agent_at(site, token_env="DESK_TOKEN")
            site.meddle = on("SendMessage", answering(307, Location=thief.url + "/rpc"))
            assert (await fault_of(agent.send("c", BRIEF, is_again=False))).kind == "final"
            await agent.close()
        assert thief.calls == []


async def test_what_an_agent_did_although_its_answer_was_lost_is_found() -> None:
    async with serving_agent() as site:
        agent = agent_at(site)
        site.meddle = on("SendMessage", losing(site.agent))
        assert (await fault_of(agent.send("child-1", BRIEF, is_again=False))).kind == "doubtful"
        job = await site.desk.job()
        assert (await agent.send("child-1", BRIEF, is_again=True)).remote_id == job.task_id
        assert site.count("SendMessage") == 1
        await agent.close()
