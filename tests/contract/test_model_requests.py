"""The bytes that a harness sends to a model: those of today where nothing is set, and the effort where one is (R8)."""

from pathlib import Path

import pytest

from tests.security.harness import Person, whole_harness
from tiny_harness.ext import task as task_ext

pytestmark = pytest.mark.timeout(120)

WITHOUT = {
    "responses": b'{"model":"small","stream":true,"input":[{"role":"user","content":"hello"}]}',
    "chat_completions": b'{"model":"small","stream":true,"messages":[{"role":"user","content":"hello"}],'
    b'"stream_options":{"include_usage":true}}',
}
"""Bodies of a first turn, byte by byte."""

EFFORT = {"responses": b',"reasoning":{"effort":"%s"}', "chat_completions": b',"reasoning_effort":"%s"'}


def bodies(api: str, effort: bytes | None = None) -> bytes:
    """What a first turn sends, with an effort, which stands behind the words, or without."""
    words, end, rest = WITHOUT[api].partition(b'"hello"}]')
    return words + end + (EFFORT[api] % effort if effort else b"") + rest


@pytest.mark.parametrize("api", WITHOUT)
async def test_without_an_effort_a_request_is_what_it_is_without_efforts(tmp_path: Path, api: str) -> None:
    async with whole_harness(tmp_path, {"openai": {"api": api}}) as harness:
        ann = harness.person("ann")
        await ann.say("hello")
        for text in ("/effort", "/effort maximum", "/status", "/model", "/help"):
            await ann.say(text)
            task_id = (await ann.say(text)).task_id
            await ann.say("hello", task_id)
    assert harness.model.bodies == [bodies(api)] * 6


@pytest.mark.parametrize("api", WITHOUT)
async def test_a_tasks_effort_is_in_every_later_request_and_in_its_metadata(tmp_path: Path, api: str) -> None:
    async with whole_harness(tmp_path, {"openai": {"api": api}}) as harness:
        ann = harness.person("ann")
        for value in ("low", "medium", "high"):
            task_id = (await ann.say(f"/effort {value}")).task_id
            assert (await ann.task(task_id))["metadata"][task_ext.KEY]["reasoning_effort"] == value
            await ann.say("hello", task_id)
            assert harness.model.bodies[-1] == bodies(api, value.encode())
            await ann.say("again", task_id)
            assert EFFORT[api] % value.encode() in harness.model.bodies[-1]
        assert await first_request(ann, harness.model.bodies) == bodies(api), "other tasks have none"


@pytest.mark.parametrize("api", WITHOUT)
async def test_the_configured_effort_counts_where_a_task_has_none(tmp_path: Path, api: str) -> None:
    async with whole_harness(tmp_path, {"openai": {"api": api, "effort": "high"}}) as harness:
        ann = harness.person("ann")
        assert await first_request(ann, harness.model.bodies) == bodies(api, b"high")
        task_id = (await ann.say("/effort low")).task_id
        await ann.say("hello", task_id)
        assert harness.model.bodies[-1] == bodies(api, b"low")
        assert "The effort is high." in (await ann.say("/effort")).words


async def first_request(person: Person, heard: list[bytes]) -> bytes:
    """Start a task, and give what its first turn sent."""
    await person.say("hello")
    return heard[-1]
