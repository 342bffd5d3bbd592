"""Slash commands from the shell: real processes against a served gateway."""

import asyncio
import json
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.integration.fake_gateway import FakeGateway
from tiny_harness.ext import commands
from tiny_harness.web_server import bind_tcp, serving

pytestmark = pytest.mark.timeout(120)

PATIENCE_S = 60


@asynccontextmanager
async def served(gateway: FakeGateway, folder: Path) -> AsyncGenerator[str]:
    """Serve a gateway on a loopback port while the block runs; gives its address."""
    tcp = bind_tcp("127.0.0.1", 0)
    try:
        async with serving(gateway.app(), folder / "s", tcp):
            yield f"http://127.0.0.1:{tcp.getsockname()[1]}"
    finally:
        tcp.close()


async def run(home: Path, url: str, *words: str) -> tuple[int, str, str]:
    """Run a command line; its status and what it printed."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tiny_harness", *words, "--url", url, "--participant", "ann"),
        env={**os.environ, "HOME": str(home)},
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=PIPE,
    )
    async with asyncio.timeout(PATIENCE_S):
        out, err = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


async def test_send_runs_a_command_and_says_what_became_of_it(tmp_path: Path) -> None:
    async with served(FakeGateway(), tmp_path) as url:
        assert await run(tmp_path, url, "send", "/status") == (0, "status: done\n", "")
        assert await run(tmp_path, url, "send", "/secret") == (1, "", "secret: refused\n")
        status, out, err = await run(tmp_path, url, "send", "--json", "/model big")
        told = json.loads(out)
        assert (status, err) == (0, "")
        assert (told["reply"], told["model"]) == ("model: done", "big")
        assert told["command"] == {"name": "model", "outcome": "done", "data": {"model": "big"}}
        status, out, err = await run(tmp_path, url, "send", "--json", "/secret")
        assert (status, json.loads(out)["command"]["outcome"], err) == (1, "refused", "")
        status, out, err = await run(tmp_path, url, "send", "--json", "hello")
        assert (status, json.loads(out)["command"], err) == (0, None, "")


async def test_show_tells_model_effort_and_family_and_who_spoke(tmp_path: Path) -> None:
    gateway = FakeGateway()
    async with served(gateway, tmp_path) as url:
        await run(tmp_path, url, "send", "/model big")
        child = {"task_id": "k1", "state": "TASK_STATE_INPUT_REQUIRED", "sub_state": "awaiting-next-message"}
        gateway.tasks["t1"].data |= {"reasoning_effort": "high", "parent_tasks": ["p1"], "sub_tasks": [child]}
        status, out, _ = await run(tmp_path, url, "tasks", "show", "t1")
        assert status == 0
        assert out.splitlines()[2:] == [
            "model: big",
            "effort: high",
            "part of: p1",
            "sub-task: k1 INPUT_REQUIRED, awaiting-next-message",
            "",
            "you: /model big",
            "",
            "harness, /model done: model: done",
        ]
        _, out, _ = await run(tmp_path, url, "tasks", "show", "t1", "--json")
        told = json.loads(out)
        assert (told["model"], told["effort"], told["parent_tasks"]) == ("big", "high", ["p1"])
        assert told["sub_tasks"] == [{"task_id": "k1", "state": "INPUT_REQUIRED", "sub_state": "awaiting-next-message"}]
        assert told["messages"][1]["command"]["name"] == "model"


async def test_a_question_ends_send_with_3_and_a_script_answers_it(tmp_path: Path) -> None:
    gateway = FakeGateway()
    async with served(gateway, tmp_path) as url:
        hint = "answer with: tiny-harness tasks answer t1 1.1.0 approve|refuse\n"
        asked = await run(tmp_path, url, "send", "refund it")
        assert asked == (3, "May I refund it?\nchoices: approve, refuse\n", hint)
        _, out, _ = await run(tmp_path, url, "tasks", "show", "t1")
        assert out.endswith(f"\nquestion 1.1.0: May I refund it?\nchoices: approve, refuse\n{hint}")
        status, out, _ = await run(tmp_path, url, "send", "--json", "--task", "t1", "/status")
        told = json.loads(out)
        assert (status, told["reply"]) == (3, "status: done")
        assert told["question"] == {
            "sub_state": "awaiting-approval",
            "request_id": "1.1.0",
            "choices": ["approve", "refuse"],
            "words": "May I refund it?",
        }
        assert await run(tmp_path, url, "tasks", "answer", "t1", "1.1.0", "refuse", "--reason", "too much") == (
            0,
            "not refunded\n",
            "",
        )
        status, out, err = await run(tmp_path, url, "tasks", "answer", "t1", "1.1.0", "approve")
        assert (status, out) == (1, "")
        assert "is not open" in err


async def test_a_question_without_a_request_is_answered_by_a_message(tmp_path: Path) -> None:
    async with served(FakeGateway(), tmp_path) as url:
        hint = "answer with: tiny-harness send --task t1 TEXT\n"
        assert await run(tmp_path, url, "send", "which one") == (3, "Which one?\nchoices: one, two\n", hint)
        assert await run(tmp_path, url, "send", "--task", "t1", "/status") == (
            3,
            "status: done\nWhich one?\nchoices: one, two\n",
            hint,
        )
        assert await run(tmp_path, url, "send", "--task", "t1", "two") == (0, "echo: two\n", "")


async def test_show_tells_plan_usage_and_notes(tmp_path: Path) -> None:
    gateway = FakeGateway()
    async with served(gateway, tmp_path) as url:
        assert await run(tmp_path, url, "send", "look at it") == (0, "echo: look at it\n", "")
        known = gateway.tasks["t1"]
        known.data["plan"]["steps"][0]["output"] = "two\nlines " + "x" * 200
        known.data["usage"] = {"calls": 3, "input_tokens": 120, "output_tokens": 8, "cached_tokens": 100}
        known.data["usage"] |= {"cost": "0.000012", "unpriced": ["big"]}
        note = {"messageId": "n", "role": "ROLE_AGENT", "parts": [{"text": "Sub-task k is COMPLETED."}]}
        known.history.append({**note, "metadata": {commands.KEY: {"literal": True}}})
        _, out, _ = await run(tmp_path, url, "tasks", "show", "t1")
        assert out.splitlines()[2:] == [
            "plan: 1 of 2 steps done",
            f"  done     Look: two lines {'x' * 90} …",
            "  pending  Tell",
            "usage: 3 calls, 120 tokens in (100 cached), 8 out, cost 0.000012, no price for big",
            "",
            "you: look at it",
            "",
            "agent: let me see",
            "",
            "agent: echo: look at it",
            "",
            "note: Sub-task k is COMPLETED.",
        ]
        _, out, _ = await run(tmp_path, url, "tasks", "show", "t1", "--json")
        told = json.loads(out)
        assert [step["id"] for step in told["plan"]] == ["a", "b"]
        assert (told["usage"]["calls"], told["usage"]["cost"], told["question"]) == (3, "0.000012", None)
