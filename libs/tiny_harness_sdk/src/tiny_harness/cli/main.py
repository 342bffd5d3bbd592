"""`tiny-harness`: reads the command line and runs one command.

Loads the standard library's argparse and our own light files only: `--version` and `--help` must be instant.
"""

import argparse
import io
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, NoReturn, Protocol

from tiny_harness._version import __version__
from tiny_harness.cli import (
    backup,
    config,
    demo,
    doctor,
    hooks,
    schedules,
    send,
    serve,
    store,
    tasks,
    tokens,
    tui,
    worker,
)
from tiny_harness.paths import resolve_config

EXIT_FAILED: Final = 1
EXIT_USAGE: Final = 2
EXIT_INTERRUPTED: Final = 130


class Command(Protocol):
    """A command's module."""

    @property
    def NAME(self) -> str:
        """How it is called."""
        ...

    @property
    def HELP(self) -> str:
        """What it does, in a few words."""
        ...

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare its arguments."""
        ...

    def run(self, args: argparse.Namespace) -> int:
        """Run it; returns the exit status."""
        ...


COMMANDS: Final[tuple[Command, ...]] = (
    tui,
    demo,
    send,
    tasks,
    serve,
    worker,
    hooks,
    config,
    tokens,
    schedules,
    store,
    backup,
    doctor,
)


def script() -> NoReturn:
    """Run as a program. A process that used Temporal's client may abort at exit, so it leaves by the short way."""
    status = EXIT_FAILED
    _open_standard_streams()
    try:
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")  # a terminal that knows few letters gets the others named
        status = main()
    except BaseException:  # noqa: BLE001 - a defect of ours: its traceback, and the same way out
        import traceback

        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError):  # whoever read it has gone
                stream.flush()
        if "logging" in sys.modules:
            sys.modules["logging"].shutdown()
        os._exit(status)


def _open_standard_streams() -> None:
    """Put the null device where a standard stream is closed: else the next file that is opened takes its place."""
    for handle in range(3):
        try:
            os.fstat(handle)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 - open as long as the process lives


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line; returns the exit status: 0 done, 1 failed, 2 usage or configuration."""
    words = sys.argv[1:] if argv is None else list(argv)
    try:
        args = build_parser(words).parse_args(words)
        return (getattr(args, "run", None) or tui.run)(args)
    except SystemExit as stop:  # argparse's way to end
        return stop.code if isinstance(stop.code, int) else EXIT_USAGE
    except BrokenPipeError:  # whoever read our output has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_FAILED
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the process's edge; what is not ours goes on with its traceback
        return _fail(error)


def build_parser(words: Sequence[str] = ()) -> argparse.ArgumentParser:
    """Build the parser. The words say which configuration `--help` names."""
    parser = argparse.ArgumentParser(
        prog="tiny-harness",
        description="A durable agent: a conversation is a task that stays open until you complete or cancel it.",
        epilog=_configuration(words),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"tiny-harness {__version__}")
    parser.add_argument("--config", metavar="PATH", help="configuration file (default: ~/.tiny-harness/config.toml)")
    tui.add_arguments(parser)
    parser.set_defaults(task=None, plain=False, url=None, token=None, participant=None)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for command in COMMANDS:
        sub = commands.add_parser(command.NAME, help=command.HELP, description=command.HELP)
        # Also behind the command; without a default, or it would hide one that stands before it.
        sub.add_argument("--config", metavar="PATH", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
        command.add_arguments(sub)
        sub.set_defaults(run=command.run)
    return parser


def _configuration(words: Sequence[str]) -> str:
    peek = argparse.ArgumentParser(add_help=False, exit_on_error=False)
    peek.add_argument("--config")
    try:
        known, _ = peek.parse_known_args(list(words))
    except argparse.ArgumentError:
        known = argparse.Namespace(config=None)
    try:
        found = resolve_config(known.config)
    except Exception as error:  # noqa: BLE001 - help is given also where there is no home to name
        return f"configuration in effect: none ({error})"
    state = "" if found.exists else "; not there yet" if found.is_default else "; there is no such file"
    return f"configuration in effect: {found.path} (from {found.origin}{state})"


def _fail(error: Exception) -> int:
    """Tell an error of ours; the import is late, since most runs need none."""
    from tiny_harness.errors import AlreadyRunning, ConfigError, HarnessError, SignInRefused

    if not isinstance(error, HarnessError):
        raise error
    from tiny_harness.cli.output import show_error

    show_error(f"tiny-harness: {error}")
    return EXIT_USAGE if isinstance(error, ConfigError | AlreadyRunning | SignInRefused) else EXIT_FAILED
