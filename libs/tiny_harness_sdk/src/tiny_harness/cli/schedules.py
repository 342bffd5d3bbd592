"""`tiny-harness schedules`: takes the heartbeat's schedule out of Temporal."""

import argparse

from tiny_harness.cli.output import show, show_json
from tiny_harness.cli.start import load_settings, run_async, run_folder_of

NAME = "schedules"
HELP = "delete the heartbeat's schedule"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    verbs = parser.add_subparsers(title="verbs", metavar="VERB", required=True, dest="verb")
    delete = verbs.add_parser("delete", help="delete it; the next engine that starts makes it anew, unless told not to")
    delete.add_argument("--json", action="store_true", help="print JSON")
    delete.add_argument("--config", metavar="PATH", default=argparse.SUPPRESS, help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    """Delete the schedule; that there is none is no failure."""
    return run_async(_delete(args))


async def _delete(args: argparse.Namespace) -> int:
    settings = load_settings(args, create=True)
    from temporalio.service import RPCError

    from tiny_harness.errors import Unavailable
    from tiny_harness.temporal import open_temporal
    from tiny_harness.temporal.schedules import delete_heartbeat

    async with open_temporal(settings, run_folder_of(settings)) as pending:
        temporal = await pending.ready()
        try:
            is_deleted = await delete_heartbeat(temporal, settings.temporal.task_queue)
        except RPCError as error:
            raise Unavailable(f"Temporal cannot answer now ({error.message})") from error
    if args.json:
        show_json({"deleted": is_deleted})
    else:
        show("deleted the heartbeat's schedule" if is_deleted else "there is no schedule of this harness")
    return 0
