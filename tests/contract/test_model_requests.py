"""The bytes that a harness sends to a model: those of today where nothing is set, and the effort where one is (R8)."""

from pathlib import Path

import pytest

from tests.security.harness import Person, whole_harness
from tiny_harness.ext import task as task_ext

pytestmark = pytest.mark.timeout(120)

APIS = ("responses", "chat_completions")

EFFORT = {"responses": b',"reasoning":{"effort":"%s"}', "chat_completions": b',"reasoning_effort":"%s"'}
"""What an effort adds to a body; `tests/contract/golden` pins whole bodies."""


@pytest.mark.parametrize("api", APIS)
async def test_without_an_effort_a_request_is_what_it_is_without_efforts(tmp_path: Path, api: str) -> None:
    async with whole_harness(tmp_path, {"openai": {"api": api}}) as harness:
        ann = harness.person("ann")
        for text in ("/effort", "/effort maximum", "/status", "/model", "/help"):
            await ann.say("hello", (await ann.say(text)).task_id)
    assert len(harness.model.bodies) == 5
    assert len(set(harness.model.bodies)) == 1
    assert b"effort" not in harness.model.bodies[0]
    assert b'"reasoning' not in harness.model.bodies[0]


@pytest.mark.parametrize("api", APIS)
async def test_a_tasks_effort_is_in_every_later_request_and_adds_nothing_else(tmp_path: Path, api: str) -> None:
    async with whole_harness(tmp_path, {"openai": {"api": api}}) as harness:
        ann = harness.person("ann")
        plain = await first_request(ann, "/help", harness.model.bodies)
        for value in ("low", "medium", "high"):
            task_id = (await ann.say(f"/effort {value}")).task_id
            assert (await ann.task(task_id))["metadata"][task_ext.KEY]["reasoning_effort"] == value
            await ann.say("hello", task_id)
            added = EFFORT[api] % value.encode()
            assert harness.model.bodies[-1].count(added) == 1
            assert harness.model.bodies[-1].replace(added, b"") == plain
            await ann.say("again", task_id)
            assert added in harness.model.bodies[-1]
        assert await first_request(ann, "/help", harness.model.bodies) == plain, "other tasks have none"


@pytest.mark.parametrize("api", APIS)
async def test_the_configured_effort_counts_where_a_task_has_none(tmp_path: Path, api: str) -> None:
    async with whole_harness(tmp_path, {"openai": {"api": api, "effort": "high"}}) as harness:
        ann = harness.person("ann")
        assert EFFORT[api] % b"high" in await first_request(ann, "/help", harness.model.bodies)
        assert EFFORT[api] % b"low" in await first_request(ann, "/effort low", harness.model.bodies)
        assert "The effort is high." in (await ann.say("/effort")).words


async def first_request(person: Person, command: str, heard: list[bytes]) -> bytes:
    """Start a task with a command, and give what its first turn sent."""
    await person.say("hello", (await person.say(command)).task_id)
    return heard[-1]
