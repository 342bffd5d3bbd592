"""What commands share before and after their own work: settings, the harness to talk to, running async code."""

import argparse
import os
import signal
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from tiny_harness.paths import check_home, prepare_home, resolve_config

if TYPE_CHECKING:
    from tiny_harness.address import Address
    from tiny_harness.client import HarnessClient
    from tiny_harness.settings import Settings

T = TypeVar("T")

EXIT_INTERRUPTED: Final = 130
TOKEN_VARIABLE: Final = "TINY_HARNESS_TOKEN"

RETRY_FOR_S: Final = 60.0
"""How long to go on when the harness that we were attached to goes away; then this process hosts it."""
RETRY_PAUSE_S: Final = 0.2
HEAL_ATTACHED_S: Final = 0.5
"""How long a call waits for the same harness to come back, before another is looked for or hosted here."""
HEAL_REMOTE_S: Final = 20.0
"""The same for `--url`, where there is no other."""


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
    if found.is_default:
        made = prepare_home() if create else check_home()
        if made is not None:
            print(f"created {made}", file=sys.stderr)
    from tiny_harness.settings import Settings

    return Settings.load(found.path)


def home_of(settings: "Settings") -> Path:
    """Name the home of a configuration: the folder of its store. One harness lives in it."""
    return settings.store.sqlite_path.absolute().parent


def _check_target(args: argparse.Namespace) -> None:
    """Refuse what no harness would understand, before one is started."""
    import re

    from tiny_harness.errors import ConfigError
    from tiny_harness.ext.task import PARTICIPANT_ID_PATTERN

    if args.participant is not None and not re.fullmatch(PARTICIPANT_ID_PATTERN, args.participant):
        raise ConfigError("--participant has letters, digits and ._:@- only, 128 at most")
    if args.token is not None and not args.token.isascii():
        raise ConfigError("--token is no token")
    if args.task == "":
        raise ConfigError("--task is empty")


@asynccontextmanager
async def open_target(args: argparse.Namespace, *, take_over: bool = False) -> AsyncGenerator[tuple["Address", str]]:
    """Open the harness to talk to, and say as whom: the one at `--url`, or the home's, hosted here if nobody does.

    With `take_over` it is hosted here too when the process that hosts it has gone.
    """
    from tiny_harness.address import Address
    from tiny_harness.settings import login_name

    _check_target(args)
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
    async with open_harness(settings, home=home, take_over=take_over) as address:
        yield address, participant


async def call_target(args: argparse.Namespace, call: Callable[["HarnessClient"], Awaitable[T]]) -> T:
    """Make a call at the harness to talk to; when that goes away, at the next one, hosted here if need be.

    Args:
        args: See `add_target`.
        call: May be made more than once; it must not matter how often it arrives.

    Raises:
        ConnectionLost, Unavailable: For `RETRY_FOR_S`; at `--url` as soon as the client gives up.
    """
    import asyncio

    from tiny_harness.errors import ConnectionLost

    loop = asyncio.get_running_loop()
    deadline: float | None = None
    while True:
        try:
            async with open_target(args) as (address, participant):
                return await _call(address, participant, call, is_remote=bool(args.url))
        except ConnectionLost:
            deadline = deadline or loop.time() + RETRY_FOR_S
            if args.url or loop.time() > deadline:
                raise
            await asyncio.sleep(RETRY_PAUSE_S)


async def _call(
    address: "Address", participant: str, call: Callable[["HarnessClient"], Awaitable[T]], *, is_remote: bool
) -> T:
    """Make a call at one harness, which may be too busy for a while; at a remote one the client waits by itself."""
    import asyncio

    from tiny_harness.client import connect
    from tiny_harness.errors import Unavailable

    loop = asyncio.get_running_loop()
    deadline: float | None = None
    while True:
        try:
            heal_s = HEAL_REMOTE_S if is_remote else HEAL_ATTACHED_S
            async with connect(address, participant, heal_s=heal_s) as client:
                return await call(client)
        except Unavailable as busy:
            deadline = deadline or loop.time() + RETRY_FOR_S
            if is_remote or loop.time() > deadline:
                raise
            await asyncio.sleep(busy.retry_after_s)


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
