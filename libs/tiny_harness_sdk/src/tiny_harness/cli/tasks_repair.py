"""`tiny-harness tasks repair`: an operator's way to a task whose run is stuck, or knows more than the store."""

import argparse
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from tiny_harness.cli.output import show, show_json
from tiny_harness.cli.start import load_settings, run_folder_of

if TYPE_CHECKING:
    from temporalio.client import Client

    from tiny_harness.settings import Settings
    from tiny_harness.store import Store

WORDS: Final = {
    "restarted": "task {}: a new run goes on from the store",
    "ended": "task {} has ended; nothing runs for it",
    "told": "task {} is not in the store; its run has been told to write down what it knows",
}


def add_repair_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `tasks repair`."""
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("task", metavar="ID", nargs="?", help="replace its run by one that starts from the store")
    which.add_argument(
        "--all", action="store_true", help="after the store was restored: compare all open tasks with it"
    )


async def repair(args: argparse.Namespace) -> int:
    """Repair one task, or compare all with the store."""
    settings = load_settings(args, create=True)
    from temporalio.service import RPCError

    from tiny_harness.errors import Unavailable
    from tiny_harness.repair import reconcile_all, repair_task

    queue = settings.temporal.task_queue
    async with _opened(settings) as (temporal, store):
        try:
            if args.all:
                return _tell_all(args, await reconcile_all(temporal, store, queue))
            done = await repair_task(temporal, store, queue, args.task)
        except RPCError as error:
            raise Unavailable(f"Temporal cannot answer now ({error.message})") from error
    if args.json:
        show_json({"task": args.task, "repaired": done})
    else:
        show(WORDS[done].format(args.task))
    return 0


def _tell_all(args: argparse.Namespace, count: int) -> int:
    if args.json:
        show_json({"told": count})
    else:
        show(f"told {count} open tasks to compare themselves with the store")
    return 0


@asynccontextmanager
async def _opened(settings: "Settings") -> AsyncGenerator[tuple["Client", "Store"]]:
    from tiny_harness.store import open_store
    from tiny_harness.temporal import open_temporal

    async with open_temporal(settings, run_folder_of(settings)) as pending, open_store(settings) as store:
        yield await pending.ready(), store
