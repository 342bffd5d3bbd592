"""`tiny-harness demo`: a case at a support desk, the whole of it with the scripted model; no key, no network."""

import argparse
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tiny_harness.cli.start import run_async

if TYPE_CHECKING:
    from tiny_harness.address import Address

NAME = "demo"
HELP = "see a durable agent at work, with a scripted model: no key, no network"

PARTICIPANT: Final = "you"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--keep", metavar="DIR", help="keep everything in this folder (default: a temporary one)")
    parser.add_argument("--plain", action="store_true", help="print the story and end, also on a terminal")


def run(args: argparse.Namespace) -> int:
    """Show the demo; on a terminal it goes on as a TUI."""
    from tiny_harness.cli.output import show

    stay = not args.plain and sys.stdin.isatty() and sys.stdout.isatty()
    with _folder(args.keep) as folder:
        show(f"tiny-harness demo: a scripted model, in {folder}{'' if args.keep else ', removed at the end'}\n")
        return run_async(_run(folder, stay=stay), stopped=0)


def demo_settings(folder: Path) -> dict[str, Any]:
    """Give the demo's configuration, as a document.

    Args:
        folder: Where everything is kept.
    """
    from tiny_harness.demo import PLUGIN

    return {
        "plugins": [PLUGIN],
        "model": {"provider": "scripted"},
        "store": {"sqlite_path": folder / "tiny-harness.db"},
        "server": {"participant": PARTICIPANT},
        "o11y": {"log_file": folder / "tiny-harness.log"},
    }


async def _run(folder: Path, *, stay: bool) -> int:
    async with _hosted(folder) as address:
        from tiny_harness.cli.story import Story
        from tiny_harness.client import connect

        async with connect(address, PARTICIPANT) as client:
            story = Story(client)
            task = await story.tell()
            if not stay:
                await story.end()
                _show_ledger(folder)
        if stay:
            from tiny_harness.tui.app import run_tui

            await run_tui(address, PARTICIPANT, task.task_id)
    _show_way_on()
    return 0


def _show_ledger(folder: Path) -> None:
    from tiny_harness.cli.output import show
    from tiny_harness.demo import ledger

    lines = ledger(folder).read_text().splitlines()
    show(f"The shop's ledger has {len(lines)} refund{'' if len(lines) == 1 else 's'}: {', '.join(lines)}\n")


def _show_way_on() -> None:
    from tiny_harness.cli.output import show
    from tiny_harness.demo import PLUGIN

    show(
        "The same with a real model: put this above all sections of your configuration file"
        f' (`tiny-harness config path`),\n\n    plugins = ["{PLUGIN}"]\n\n'
        "set OPENAI_API_KEY, or `base_url` under [openai], and run `tiny-harness`."
    )


@asynccontextmanager
async def _hosted(folder: Path) -> AsyncGenerator["Address"]:
    from tiny_harness.local import running_harness
    from tiny_harness.logs import configure_logs
    from tiny_harness.settings import Settings

    settings = Settings.model_validate(demo_settings(folder))
    configure_logs(settings.o11y, is_service=False, variables=settings.secret_variables)
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
