"""The line mode: lines in, replies out."""

import asyncio
import io

from tests.unit.sdk.fake_client import FakeClient
from tiny_harness.errors import ServerRefused
from tiny_harness.tui.plain import Lines


async def talk(client: FakeClient, text: str) -> tuple[int, str]:
    out = io.StringIO()
    async with asyncio.timeout(10):
        return await Lines(client.as_client(), io.StringIO(text), out).run(), out.getvalue()


async def test_each_line_is_a_message_of_one_task() -> None:
    client = FakeClient()
    assert await talk(client, "one\n\n  \ntwo") == (0, "echo: one\necho: two\n")
    assert [task_id for _, task_id in client.sent] == ["t1", "t1"]


async def test_a_task_that_ends_says_so_and_the_next_line_starts_another_in_its_context() -> None:
    client = FakeClient()
    assert await talk(client, "done\nmore\n") == (0, "echo: done\n[Completed]\necho: more\n")
    assert [task_id for _, task_id in client.sent] == ["t1", "t2"]


async def test_a_refused_line_is_told_and_the_next_one_goes_on() -> None:
    client = FakeClient()
    client.fails = [ServerRefused("not\x07 now")]
    assert await talk(client, "one\ntwo\n") == (1, "error: not now\necho: two\n")


async def test_control_characters_are_not_printed() -> None:
    assert await talk(FakeClient(), "a\x1b[31mb\n") == (0, "echo: a[31mb\n")


async def test_a_command_is_a_line_like_any_other_and_a_refused_one_is_told() -> None:
    client = FakeClient()
    assert await talk(client, "/status\n/model x\n/open t1\n") == (
        1,
        "all is well\nerror: not for you\necho: /open t1\n",
    )
    assert [text for text, _ in client.sent] == ["/status", "/model x", "/open t1"]
