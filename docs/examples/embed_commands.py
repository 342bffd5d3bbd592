"""Host a harness with a command and a policy of your own, and use both. Runs as it is: no key, no network."""

import asyncio
import tempfile
from pathlib import Path

from tiny_harness import (
    CommandContext,
    CommandFailed,
    CommandRegistry,
    Executor,
    HookAbort,
    Plugin,
    RefusedByPolicy,
    RequestContext,
    Settings,
    call_function,
    connect,
    running_harness,
)

commands = CommandRegistry()


@commands.command("sum", argument_hint="<numbers>", description="Add numbers up")
def add_up(context: CommandContext) -> str:
    numbers = context.arguments.split()
    if not numbers or not all(number.isdecimal() for number in numbers):
        raise CommandFailed("Give me whole numbers: /sum 19 23")
    return f"That makes {sum(map(int, numbers))}."


async def no_falcons(context: RequestContext) -> None:
    if "falcon" in context.text.lower():
        raise HookAbort("that project has no name here")


policies = Plugin(
    "policies", executors=(Executor("policies/no-falcons", "request.received", "pre", call_function(no_falcons)),)
)


async def main(folder: Path) -> None:
    settings = Settings.model_validate(
        {"model": {"provider": "scripted"}, "store": {"sqlite_path": folder / "tiny-harness.db"}}
    )
    async with (
        running_harness(settings, commands=commands, plugins=[policies]) as harness,
        connect(harness.address, "ada") as client,
    ):
        print((await client.send("/sum 19 23")).reply)
        try:
            await client.send("How is Project Falcon?")
        except RefusedByPolicy as refusal:
            print(refusal)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        asyncio.run(main(Path(name)))
