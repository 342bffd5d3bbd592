"""`tiny-harness` and `tiny-harness tui`: the conversation in a terminal."""

import argparse
import sys

from tiny_harness.cli.start import add_target, ask_for_token, open_target, run_async

NAME = "tui"
HELP = "talk in the terminal (the same as no command)"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "--task", default=argparse.SUPPRESS, metavar="ID", help="the task to open (default: a new conversation)"
    )
    parser.add_argument(
        "--plain", action="store_true", default=argparse.SUPPRESS, help="line by line, for scripts and screen readers"
    )
    add_target(parser)


def run(args: argparse.Namespace) -> int:
    """Open the TUI, or the plain mode where there is no terminal."""
    ask_for_token(args)
    return run_async(_run(args), stopped=0)


async def _run(args: argparse.Namespace) -> int:
    async with open_target(args, take_over=True) as (address, participant):
        if args.plain or not (sys.stdin.isatty() and sys.stdout.isatty()):
            from tiny_harness.tui.plain import run_plain

            return await run_plain(address, participant, sys.stdin, sys.stdout, args.task)
        from tiny_harness.tui.app import run_tui

        await run_tui(address, participant, args.task)
        return 0
