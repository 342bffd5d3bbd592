"""What commands share before and after their own work: settings, the harness to talk to, running async code."""

import argparse
import os
import signal
import sys
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tiny_harness.paths import prepare_home, resolve_config

if TYPE_CHECKING:
    from tiny_harness.address import Address
    from tiny_harness.settings import Settings

EXIT_INTERRUPTED: Final = 130
TOKEN_VARIABLE: Final = "TINY_HARNESS_TOKEN"


def add_target(parser: argparse.ArgumentParser) -> None:
    """Declare which harness to talk to, and as whom.

    Without defaults, which would hide options that stand before the command; `main` has them.
    """
    unset = argparse.SUPPRESS
    parser.add_argument("--url", default=unset, help="talk to the harness at this address, not to this home's")
    parser.add_argument("--token", default=unset, help=f"bearer token for --url (default: ${TOKEN_VARIABLE})")
    who = "who speaks (default: [server] participant, else the login)"
    parser.add_argument("--participant", default=unset, metavar="ID", help=who)


def load_settings(args: argparse.Namespace, *, create: bool) -> "Settings":
    """Load the settings in effect; with `create` the default file is made where it is missing (R2.4)."""
    found = resolve_config(args.config)
    if found.is_default and create:
        made = prepare_home()
        if made is not None:
            print(f"created {made}", file=sys.stderr)
    from tiny_harness.settings import Settings

    return Settings.load(found.path)


def home_of(settings: "Settings") -> Path:
    """Name the home of a configuration: the folder of its store. One harness lives in it."""
    return settings.store.sqlite_path.absolute().parent


@asynccontextmanager
async def open_target(args: argparse.Namespace) -> AsyncGenerator[tuple["Address", str]]:
    """Open the harness to talk to, and say as whom: the one at `--url`, or the home's, hosted here if nobody does."""
    from tiny_harness.address import Address
    from tiny_harness.settings import login_name

    if args.url:
        token = args.token or os.environ.get(TOKEN_VARIABLE)
        yield Address(args.url.rstrip("/"), token=token), args.participant or login_name()
        return
    settings = load_settings(args, create=True)
    participant = args.participant or settings.server.participant or login_name()
    from tiny_harness.config_file import require_model_key
    from tiny_harness.host import find_host
    from tiny_harness.local import open_harness
    from tiny_harness.logs import configure_logs

    home = home_of(settings)
    if find_host(home) is None:
        require_model_key(settings, file=str(resolve_config(args.config).path))
    configure_logs(settings.o11y, is_service=False)
    async with open_harness(settings, home=home) as address:
        yield address, participant


def run_async(work: Coroutine[Any, Any, int], *, stopped: int = EXIT_INTERRUPTED) -> int:
    """Run a command's coroutine; SIGTERM, SIGHUP and SIGINT end it cleanly with the given status."""
    import asyncio

    import uvloop

    async def guarded() -> int:
        task = asyncio.ensure_future(work)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            loop.add_signal_handler(number, task.cancel)
        try:
            return await task
        except asyncio.CancelledError:
            return stopped

    return uvloop.run(guarded())
