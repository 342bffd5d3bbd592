"""What the tests of this folder call executors with."""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from pydantic import SecretStr

from tiny_harness.hooks.contexts import CommandContext, RequestContext, TaskRef
from tiny_harness.hooks.declaration import RemoteDeclaration
from tiny_harness.hooks.executor import Executor
from tiny_harness.hooks.remote import RemoteExecutors
from tiny_harness.ids import new_id

SECRET = SecretStr("not-a-secret")
TASK = TaskRef(task_id="task-1", context_id="context-1", state="TASK_STATE_WORKING")
PATIENT_S = 30.0
"""A deadline for calls that are answered at once, on however slow a machine."""


def secrets(key_id: str) -> list[SecretStr]:
    """Know one key."""
    return [SECRET] if key_id == "test" else []


def request(text: str = "hello") -> RequestContext:
    """A context of `request.received.pre`."""
    return RequestContext(
        operation="request.received",
        phase="pre",
        task=TASK,
        correlation_id="correlation-1",
        delivery_id=new_id(),
        message_id="message-1",
        text=text,
    )


def command(arguments: str = "staging") -> CommandContext:
    """A context of `command.invoked.in`."""
    return CommandContext(
        operation="command.invoked",
        phase="in",
        task=TASK,
        correlation_id="correlation-1",
        delivery_id=new_id(),
        command="deploy",
        arguments=arguments,
    )


def declared(url: str, point: str = "request.received.pre", **changes: Any) -> RemoteDeclaration:
    """Declare an executor at a URL."""
    fields = {
        "name": "test/one",
        "point": point,
        "url": url,
        "key_id": "test",
        "deadline_s": PATIENT_S,
        "plugin": "test",
    }
    return RemoteDeclaration(**{**fields, **changes})


@asynccontextmanager
async def remote(
    url: str,
    point: str = "request.received.pre",
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    **changes: Any,
) -> AsyncGenerator[Executor]:
    """Have one remote executor while the block runs."""
    async with RemoteExecutors(secrets=secrets, clock=clock, sleep=sleep) as remotes:
        yield remotes.executor(declared(url, point, **changes))
