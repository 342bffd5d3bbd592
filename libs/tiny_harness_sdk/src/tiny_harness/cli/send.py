"""`tiny-harness send`: one message, its reply on standard output; for scripts."""

import argparse
import sys
from typing import TYPE_CHECKING, Final

from tiny_harness.cli.output import show, show_json, state_words, task_json
from tiny_harness.cli.start import add_target, open_target, run_async

if TYPE_CHECKING:
    from tiny_harness.client import TurnResult

NAME = "send"
HELP = "send one message and print the reply"

EXIT_QUESTION: Final = 3
RETRY_FOR_S: Final = 60.0
"""How long to go on when the harness that we were attached to goes away; then this process hosts it."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("text", metavar="TEXT", help="the message, or - to read it from standard input")
    parser.add_argument(
        "--task", default=argparse.SUPPRESS, metavar="ID", help="the task to go on with (default: a new one)"
    )
    parser.add_argument("--json", action="store_true", help="print task and reply as JSON")
    add_target(parser)


def run(args: argparse.Namespace) -> int:
    """Send; the status is 3 when the task waits for an answer or an approval."""
    text = sys.stdin.read() if args.text == "-" else args.text
    if not text.strip():
        from tiny_harness.errors import ConfigError

        raise ConfigError("the message is empty")
    return run_async(_run(args, text))


async def _run(args: argparse.Namespace, text: str) -> int:
    result = await _send(args, text)
    if args.json:
        show_json({**task_json(result.task), "reply": result.reply})
    else:
        show(result.reply)
        if sys.stderr.isatty():
            print(f"task {result.task.task_id}: {state_words(result.task)}", file=sys.stderr)
    return EXIT_QUESTION if result.task.sub_state in ("awaiting-answer", "awaiting-approval") else 0


async def _send(args: argparse.Namespace, text: str) -> "TurnResult":
    """Send under one message id, however often the harness has to be found again."""
    import asyncio

    from tiny_harness.errors import ConnectionLost
    from tiny_harness.ids import new_id

    message_id = new_id()
    loop = asyncio.get_running_loop()
    deadline = loop.time() + RETRY_FOR_S
    while True:
        try:
            return await _send_once(args, text, message_id)
        except ConnectionLost:
            if args.url or loop.time() > deadline:
                raise


async def _send_once(args: argparse.Namespace, text: str, message_id: str) -> "TurnResult":
    async with open_target(args) as (address, participant):
        from tiny_harness.client import connect

        async with connect(address, participant) as client:
            return await client.send(text, task_id=args.task, message_id=message_id, idempotency_key=message_id)
