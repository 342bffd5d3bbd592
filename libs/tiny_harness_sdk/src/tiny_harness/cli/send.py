"""`tiny-harness send`: one message, its reply on standard output; for scripts."""

import argparse
import sys
from typing import TYPE_CHECKING

from tiny_harness.cli.output import show, show_json, task_json
from tiny_harness.cli.start import add_target, ask_for_token, call_target, run_async
from tiny_harness.cli.turn import show_turn

if TYPE_CHECKING:
    from tiny_harness.client import TurnResult

NAME = "send"
HELP = "send one message, or run a /command, and print the reply"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("text", metavar="TEXT", help="the message, or - to read it from standard input")
    parser.add_argument(
        "--task", default=argparse.SUPPRESS, metavar="ID", help="the task to go on with (default: a new one)"
    )
    parser.add_argument(
        "--worker", metavar="ID", help="give a new, supervised task to this participant, and do not wait for it"
    )
    parser.add_argument("--json", action="store_true", help="print task and reply as JSON")
    add_target(parser)


def run(args: argparse.Namespace) -> int:
    """Send; the status is that of `show_turn`."""
    text = _read(args.text)
    ask_for_token(args)
    return run_async(_run(args, text))


def _read(argument: str) -> str:
    """Read the message, from standard input if it is `-`."""
    from tiny_harness.errors import ConfigError

    try:
        text = sys.stdin.read() if argument == "-" else argument
        text.encode()
    except UnicodeError as error:
        raise ConfigError("the message is no UTF-8 text") from error
    if not text.strip():
        raise ConfigError("the message is empty")
    return text


async def _run(args: argparse.Namespace, text: str) -> int:
    if args.worker is not None:
        return await _give(args, text)
    return show_turn(await _send(args, text), as_json=args.json)


async def _give(args: argparse.Namespace, text: str) -> int:
    """Give a task to a worker, and tell its id."""
    from tiny_harness.ids import new_id

    if args.task is not None:
        from tiny_harness.errors import ConfigError

        raise ConfigError("--worker starts a new task, so --task cannot stand beside it")
    message_id = new_id()
    task = await call_target(args, lambda client: client.give(text, args.worker, message_id=message_id))
    if args.json:
        show_json(task_json(task))
    else:
        show(task.task_id)
    return 0


async def _send(args: argparse.Namespace, text: str) -> "TurnResult":
    """Send under one message id, however often the harness has to be found again."""
    from tiny_harness.ids import new_id

    message_id = new_id()
    return await call_target(
        args,
        lambda client: client.send(text, task_id=args.task, message_id=message_id, idempotency_key=message_id),
    )
