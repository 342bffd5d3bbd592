"""Host a harness inside a program, and talk to it. Runs as it is: the scripted model needs no key."""

import asyncio
import tempfile
from pathlib import Path

from tiny_harness import Settings, connect, running_harness


async def main(folder: Path) -> None:
    settings = Settings.model_validate(
        {"model": {"provider": "scripted"}, "store": {"sqlite_path": folder / "tiny-harness.db"}}
    )
    async with running_harness(settings) as harness, connect(harness.address, "ada") as client:
        first = await client.send("My name is Ada.")
        again = await client.send("What is my name?", task_id=first.task.task_id)
        print(again.reply)
        done = await client.complete(first.task.task_id)
        print(done.state.word)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        asyncio.run(main(Path(name)))
