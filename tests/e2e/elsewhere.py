"""A service as the tests of faults want it: each call is written to a log, and held where its arguments say so.

`tiny-harness hooks serve tests.e2e.elsewhere:app` serves it.
"""

import asyncio
import os
from pathlib import Path

from tiny_harness import CommandContext, CommandResult, ExecutorApp, HookAbort, RequestContext

LOG = Path(os.environ["E2E_LOG"])

app = ExecutorApp("elsewhere")


def witness(what: str, message_id: str) -> None:
    """Write one line, whole."""
    with LOG.open("a") as log:
        log.write(f"{what} {message_id}\n")


async def hold_if(where: str, context: CommandContext) -> None:
    """Answer never, if the arguments say that it is to be held here."""
    if context.arguments == where:
        await asyncio.Event().wait()


@app.hook("command.invoked.pre", command="deploy", deadline_s=10)
async def before(context: CommandContext) -> None:
    witness("before", context.message_id)
    await hold_if("hold before", context)
    if context.arguments == "production":
        raise HookAbort("nothing goes to production on a Friday")


@app.command("deploy", argument_hint="<env>", description="Deploy the current build", deadline_s=10)
async def deploy(context: CommandContext) -> CommandResult:
    witness("called", context.message_id)
    await hold_if("hold inside", context)
    witness("done", context.message_id)
    return CommandResult(reply=f"Deployed to {context.arguments}.", data={"env": context.arguments})


@app.hook("command.invoked.post", command="deploy", deadline_s=10)
async def after(context: CommandContext) -> None:
    witness("after", context.message_id)
    await hold_if("hold after", context)


@app.hook("request.received.pre")
async def polite(context: RequestContext) -> None:
    witness("asked", context.message_id)
    if "please" not in context.text:
        raise HookAbort("say please")
