"""Executors, from the dispatch to the return: in the process, and on a service elsewhere."""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import httpx

from tests.bench.table import row
from tests.bench.timing import p95, timed
from tiny_harness.ext.task import Participant
from tiny_harness.hooks import Executor, Hooks, call_function
from tiny_harness.hooks.contexts import CommandContext, HarnessFacts, RequestContext, SenderRef, TaskRef
from tiny_harness.hooks.declaration import RemoteDeclaration
from tiny_harness.hooks.remote import RemoteExecutors
from tiny_harness.ids import new_id
from tiny_harness.redact import Redactor

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
LOCAL_ROUNDS = 1_000
REMOTE_ROUNDS = 300
SECRET = "measured-" * 4
KEY_VARIABLE = "TINY_HARNESS_HOOK_SECRET_DEPLOYS"
WORDS = "Please look at the minutes of the last meeting and tell me what is still open. " * 6
FACTS: dict[str, Any] = {
    "task": TaskRef(task_id=new_id(), context_id=new_id(), state="TASK_STATE_INPUT_REQUIRED", name="Minutes"),
    "participants": (
        Participant(id="ann", role="reporter"),
        Participant(id="tiny-harness", kind="agent", role="assignee"),
    ),
    "sender": SenderRef(id="ann", role="reporter"),
    "correlation_id": new_id(),
}


def hooks_of(*executors: Executor) -> Hooks:
    """Make a chain as an engine has it, redaction included."""
    redactor = Redactor([SECRET])
    return Hooks(executors, redact=redactor.by_value_and_shape, mask=redactor.by_value)


async def measure_local() -> None:
    """A policy in this process, against the bare call of its function."""
    context = RequestContext(operation="request.received", phase="pre", message_id="m", text=WORDS, **FACTS)

    async def policy(seen: RequestContext) -> None:
        assert seen.text

    def plain(seen: RequestContext) -> None:
        assert seen.text

    for what, function, bare in (
        ("async", policy, lambda: policy(context)),
        ("plain, in a thread", plain, lambda: asyncio.to_thread(plain, context)),
    ):
        hooks = hooks_of(Executor("bench/policy", "request.received", "pre", call_function(function)))
        base = await p95(timed(bare), LOCAL_ROUNDS)
        took = await p95(timed(lambda hooks=hooks: hooks.run(context)), LOCAL_ROUNDS)
        row(f"local executor ({what}), p95", f"{took * 1e3:.2f} ms", f"{base * 1e3:.3f} ms bare call", "<= 5 ms")


async def measure_remote() -> None:
    """A command's body in another process, against a bare request to the same server."""
    context = CommandContext(
        operation="command.invoked",
        phase="in",
        command="deploy",
        arguments="staging",
        harness=HarnessFacts(),
        **FACTS,
    )
    async with _service() as base_url, httpx.AsyncClient() as plain:
        base = await p95(timed(lambda: plain.get(f"{base_url}/healthz")), REMOTE_ROUNDS)
        for transport in ("jsonrpc", "mcp"):
            took = await _measure_transport(base_url, transport, context)
            row(
                f"remote executor ({transport}), p95",
                f"{took * 1e3:.1f} ms",
                f"{base * 1e3:.1f} ms bare GET",
                "<= 50 ms",
            )


async def _measure_transport(base_url: str, transport: Literal["jsonrpc", "mcp"], context: CommandContext) -> float:
    path = {"jsonrpc": "/rpc", "mcp": "/mcp"}[transport]
    declared = RemoteDeclaration("bench/deploy", "command.invoked.in", f"{base_url}{path}", "deploys", transport)
    async with RemoteExecutors() as clients:
        hooks = hooks_of(clients.executor(declared))

        async def deploy() -> None:
            outcome = await hooks.run(context)
            assert outcome.context.result is not None, outcome.failure
            assert outcome.context.result.reply == "Deployed to staging."

        return await p95(timed(deploy), REMOTE_ROUNDS)


@asynccontextmanager
async def _service() -> AsyncGenerator[str]:
    """Serve `docs/examples/deploys.py` in a process of its own; where."""
    os.environ[KEY_VARIABLE] = SECRET
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tiny_harness", "hooks", "serve", "deploys:app", "--bind", "127.0.0.1:0"),
        cwd=EXAMPLES,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert process.stdout is not None
    try:
        said = (await process.stdout.readline()).decode().split()
        assert said[:1] == ["serving"], said
        yield said[1].removesuffix("/rpc")
    finally:
        process.terminate()
        await process.wait()
        del os.environ[KEY_VARIABLE]
