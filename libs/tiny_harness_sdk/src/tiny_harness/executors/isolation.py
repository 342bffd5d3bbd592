"""Keeps one executor's trouble from the others: places of its own, and nothing that gets out."""

import asyncio
import logging
from typing import Any, Final

from tiny_harness.errors import HarnessError, HookFailed
from tiny_harness.hooks.contexts import HookContext
from tiny_harness.hooks.executor import Call, HookFunction, call_function

MAX_CONCURRENT: Final = 16
"""Calls of one function at a time; more wait, within their deadlines. A plain one has fewer threads than that."""

log = logging.getLogger(__name__)


def isolated(name: str, function: HookFunction) -> Call:
    """Wrap somebody's function.

    A call that hangs keeps its place, also after its caller has gone: so it starves later calls of the same function,
    and of no other. Whatever is raised is logged here with its traceback, and the caller learns nothing but that.

    Args:
        name: For the log.
        function: `async`, or plain: then it runs in threads of its own.
    """
    run = call_function(function)
    places = asyncio.Semaphore(MAX_CONCURRENT)

    async def call(context: HookContext) -> Any:
        try:
            async with places:
                return await run(context)
        except (HarnessError, KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:  # somebody else's code: not even its `sys.exit()` may end the server
            task = asyncio.current_task()
            if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
                raise  # the deadline, or the server stops
            log.exception("executor %s failed, correlation id %s", name, context.correlation_id)
            point = f"{context.operation}.{context.phase}"
            raise HookFailed(point, name, f"it raised {type(error).__name__}") from error

    return call
