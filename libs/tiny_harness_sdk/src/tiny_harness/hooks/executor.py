"""One executor: something that is called at one hook point, in process or elsewhere."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Literal

from tiny_harness.hooks.contexts import HookContext, Phase

DEFAULT_PRIORITY: Final = 1000
"""Where built-in bodies stand, and whoever says nothing. A lower number is called earlier and so replaces a body."""
DEFAULT_DEADLINE_S: Final = 5.0

OnFailure = Literal["closed", "open"]
Patch = Mapping[str, Any]
"""The fields of the context that a reply replaces."""
Call = Callable[[Any], Awaitable[Patch | None]]
HookFunction = Callable[[Any], Any]
"""What people write: plain or `async`, takes the typed context, answers a patch, or `None`."""

MAX_THREADS: Final = 4
"""Calls of one plain function that run at once; more wait, within their deadlines."""


@dataclass(frozen=True, slots=True)
class Executor:
    """An executor as a chain calls it."""

    name: str
    """Unique, such as `policies/no-secrets`."""
    operation: str
    phase: Phase
    call: Call
    """Takes a redacted context. Raises `HookAbort` to refuse; whatever else it raises is a failure."""
    priority: int = DEFAULT_PRIORITY
    deadline_s: float = DEFAULT_DEADLINE_S
    on_failure: OnFailure = "closed"
    """`closed` fails the operation; `open`, for executors that only watch, goes on without it."""
    command: str | None = None
    """On `command.invoked`: the only command that it is called for."""
    plugin: str = ""
    """Whose it is; empty: the harness's own."""
    is_remote: bool = False
    is_builtin: bool = False
    """Ships with the harness: sees contexts as they are, does nothing outside, and may run twice."""

    @property
    def point(self) -> str:
        """The hook point that it is called at."""
        return f"{self.operation}.{self.phase}"


def call_function(function: HookFunction) -> Call:
    """Wrap a plain or `async` function; a plain one runs in threads of its own.

    A call that hangs keeps its thread, also after its deadline: so it starves later calls of the same function, and of
    no other.
    """
    if inspect.iscoroutinefunction(function):
        return function
    places = asyncio.Semaphore(MAX_THREADS)
    threads = ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="hook")  # starts them when they are wanted

    async def in_thread(context: HookContext) -> Patch | None:
        await places.acquire()  # not the pool's own queue: it has no bound, and keeps what nobody waits for
        loop = asyncio.get_running_loop()

        def leave(_: Future[Any]) -> None:
            with suppress(RuntimeError):  # the loop has ended first
                loop.call_soon_threadsafe(places.release)

        done = threads.submit(function, context)
        done.add_done_callback(leave)
        answer = await asyncio.wrap_future(done)
        return await answer if inspect.isawaitable(answer) else answer

    return in_thread
