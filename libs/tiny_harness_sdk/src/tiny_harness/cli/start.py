"""What commands share before and after their own work: settings, the harness to talk to, running async code."""

import argparse
import os
import signal
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from tiny_harness.paths import check_home, prepare_home, resolve_config

if TYPE_CHECKING:
    from tiny_harness.address import Address
    from tiny_harness.client import HarnessClient
    from tiny_harness.settings import Settings

T = TypeVar("T")

EXIT_INTERRUPTED: Final = 130
EXIT_HURRIED: Final = 1
"""Of a service that was told twice to stop: something may have been cut."""
TOKEN_VARIABLE: Final = "TINY_HARNESS_TOKEN"
TOKEN_MODES: Final = ("tokens", "jwt")
"""Of `[auth] mode`: those in which the Unix socket wants a token, too."""
CARD_TIMEOUT_S: Final = 5.0

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
    parser.add_argument("--token", default=unset, help=f"bearer token to sign in with (default: ${TOKEN_VARIABLE})")
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


def run_folder_of(settings: "Settings") -> Path:
    """Name the folder for what an embedded Temporal writes, made if need be; one elsewhere writes nothing here."""
    from tiny_harness.host import run_folder

    home = home_of(settings)
    return run_folder(home) if settings.temporal.mode == "embedded" else home


def given_token(args: argparse.Namespace) -> str | None:
    """Find the token to sign in with: the option's, else the environment's."""
    return args.token or os.environ.get(TOKEN_VARIABLE) or None


def ask_for_token(args: argparse.Namespace) -> None:
    """Ask for a token on the terminal, without echo, if the harness wants one and none is given.

    Called before there is an event loop, so that the prompt can be interrupted.
    """
    if given_token(args) or not (sys.stdin.isatty() and sys.stderr.isatty()) or not _wants_token(args):
        return
    import getpass

    try:
        args.token = getpass.getpass(f"token for {args.url or 'this harness'}: ").strip() or None
    except EOFError:  # nothing was typed: the harness says what it wants
        print(file=sys.stderr)


def _wants_token(args: argparse.Namespace) -> bool:
    """Whether the harness lets nobody in without a token: as its card says, or the configuration of the home's."""
    if args.url:
        import httpx

        try:
            card = httpx.get(f"{args.url.rstrip('/')}/.well-known/agent-card.json", timeout=CARD_TIMEOUT_S).json()
        except (httpx.HTTPError, httpx.InvalidURL, ValueError):
            return False  # whoever calls next tells it better
        return isinstance(card, dict) and bool(card.get("securityRequirements"))
    found = resolve_config(args.config)
    if not found.exists:
        return False
    from tiny_harness.settings import Settings

    return Settings.load(found.path).auth.mode in TOKEN_MODES


def _check_target(args: argparse.Namespace) -> None:
    """Refuse what no harness would understand, before one is started."""
    import re

    from tiny_harness.errors import ConfigError
    from tiny_harness.ext.task import PARTICIPANT_ID_PATTERN

    if args.participant is not None and not re.fullmatch(PARTICIPANT_ID_PATTERN, args.participant):
        raise ConfigError("--participant has letters, digits and ._:@- only, 128 at most")
    token = given_token(args)
    if token is not None and not (token.isascii() and token.isprintable() and " " not in token):
        raise ConfigError(f"{'--token' if args.token else TOKEN_VARIABLE} is no token")
    if args.task == "":
        raise ConfigError("--task is empty")


@asynccontextmanager
async def open_target(
    args: argparse.Namespace, *, take_over: bool = False
) -> AsyncGenerator[tuple["Address", str | None]]:
    """Open the harness to talk to, and say as whom: the one at `--url`, or the home's, hosted here if nobody does.

    Who speaks is `None` where the token says it.

    With `take_over` it is hosted here too when the process that hosts it has gone.
    """
    from tiny_harness.address import Address
    from tiny_harness.settings import login_name

    _check_target(args)
    token = given_token(args)
    if args.url:
        yield Address(args.url.rstrip("/"), token=token), args.participant or (None if token else login_name())
        return
    settings = load_settings(args, create=True)
    if settings.auth.mode not in TOKEN_MODES:
        token = None  # the Unix socket needs none, and whoever holds one of another harness keeps it
    own_name = None if token else settings.server.participant or login_name()
    from tiny_harness.config_file import require_model_key
    from tiny_harness.host import find_host
    from tiny_harness.local import open_harness
    from tiny_harness.logs import configure_logs

    home = home_of(settings)
    if find_host(home) is None:
        require_model_key(settings, file=str(resolve_config(args.config).path))
    configure_logs(settings.o11y, is_service=False, variables=settings.secret_variables)
    async with open_harness(settings, home=home, take_over=take_over) as address:
        yield replace(address, token=token), args.participant or own_name


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
    address: "Address", participant: str | None, call: Callable[["HarnessClient"], Awaitable[T]], *, is_remote: bool
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


def run_async(work: Coroutine[Any, Any, int], *, stopped: int = EXIT_INTERRUPTED, may_hurry: bool = False) -> int:
    """Run a command's coroutine; SIGTERM, SIGHUP and SIGINT end it cleanly with the given status.

    Args:
        work: The coroutine.
        stopped: The status after such an end.
        may_hurry: A second signal ends the process at once, whatever it still waits for. Its children see to their own
            ends, as after `kill -9`.
    """
    import asyncio

    import uvloop

    async def guarded() -> int:
        task = asyncio.ensure_future(work)
        loop = asyncio.get_running_loop()
        is_asked = False

        def stop() -> None:
            nonlocal is_asked
            if is_asked and may_hurry:
                os._exit(EXIT_HURRIED)
            is_asked = True
            task.cancel()

        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            loop.add_signal_handler(number, stop)
        try:
            return await task
        except asyncio.CancelledError:
            return stopped

    return uvloop.run(guarded())
