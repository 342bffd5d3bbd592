"""`tiny-harness demo`: the whole thing with the scripted model; no key, no network."""

import argparse
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tiny_harness.cli.output import show, state_words
from tiny_harness.cli.start import run_async

if TYPE_CHECKING:
    from tiny_harness.address import Address
    from tiny_harness.client import HarnessClient

NAME = "demo"
HELP = "see a durable conversation with a scripted model: no key, no network"

PARTICIPANT: Final = "you"
LINES: Final = ("Hello!", "My name is Ada.", "What is my name?", "/status")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--keep", metavar="DIR", help="keep everything in this folder (default: a temporary one)")
    parser.add_argument("--plain", action="store_true", help="print the conversation and end, also on a terminal")


def run(args: argparse.Namespace) -> int:
    """Show the demo; on a terminal it goes on as a TUI."""
    stay = not args.plain and sys.stdin.isatty() and sys.stdout.isatty()
    with _folder(args.keep) as folder:
        show(f"tiny-harness demo: a scripted model, in {folder}{'' if args.keep else ', removed at the end'}\n")
        return run_async(_run(folder, stay=stay), stopped=0)


async def _run(folder: Path, *, stay: bool) -> int:
    async with _hosted(folder) as address:
        from tiny_harness.client import connect

        async with connect(address, PARTICIPANT) as client:
            task_id = await _talk(client)
            if not stay:
                await _end(client, task_id)
                return 0
        from tiny_harness.tui.app import run_tui

        await run_tui(address, PARTICIPANT, task_id)
    return 0


async def _talk(client: "HarnessClient") -> str:
    task_id: str | None = None
    for line in LINES:
        show(f"you    {line}")
        result = await client.send(line, task_id=task_id)
        task_id = result.task.task_id
        show("agent  " + result.reply.strip().replace("\n", "\n       "))
        show(f"       [{state_words(result.task)}]\n")
    return task_id or ""


async def _end(client: "HarnessClient", task_id: str) -> None:
    from tiny_harness.errors import TaskEnded

    done = await client.complete(task_id)
    show(f"you    (complete)\n       [{state_words(done)}]\n")
    show("you    One more thing ...")
    try:
        await client.send("One more thing ...", task_id=task_id)
    except TaskEnded as refusal:
        show(f"       refused: {refusal}\n")
    show("Your own: set OPENAI_API_KEY, or `base_url` under [openai], and run `tiny-harness`.")


@asynccontextmanager
async def _hosted(folder: Path) -> AsyncGenerator["Address"]:
    from tiny_harness.local import running_harness
    from tiny_harness.logs import configure_logs
    from tiny_harness.settings import Settings

    settings = Settings.model_validate(
        {
            "model": {"provider": "scripted"},
            "store": {"sqlite_path": folder / "tiny-harness.db"},
            "server": {"participant": PARTICIPANT},
            "o11y": {"log_file": folder / "tiny-harness.log"},
        }
    )
    configure_logs(settings.o11y, is_service=False)
    async with running_harness(settings, home=folder) as harness:
        yield harness.address


@contextmanager
def _folder(keep: str | None) -> Generator[Path]:
    import shutil
    import tempfile

    from tiny_harness.errors import ConfigError

    if keep is None:
        folder = Path(tempfile.mkdtemp(prefix="tiny-harness-demo-"))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        return
    folder = Path(keep)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"cannot be made ({error.strerror})", file=keep) from error
    yield folder
