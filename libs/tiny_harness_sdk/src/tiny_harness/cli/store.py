"""`tiny-harness store`: brings the store's tables up to this version."""

import argparse
from typing import TYPE_CHECKING

from tiny_harness.cli.output import show, show_json
from tiny_harness.cli.start import load_settings, run_async

if TYPE_CHECKING:
    from tiny_harness.store.migrate import Migrated

NAME = "store"
HELP = "bring the store's tables up to this version"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    verbs = parser.add_subparsers(title="verbs", metavar="VERB", required=True, dest="verb")
    migrate = verbs.add_parser(
        "migrate", help="make or change the tables; the one job of a deployment, before its roll-out"
    )
    migrate.add_argument("--json", action="store_true", help="print JSON")
    migrate.add_argument("--config", metavar="PATH", default=argparse.SUPPRESS, help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    """Migrate; that there is nothing to do is no failure."""
    return run_async(_migrate(args))


async def _migrate(args: argparse.Namespace) -> int:
    settings = load_settings(args, create=True)
    from tiny_harness.store.open import migrate_store

    done = await migrate_store(settings)
    if args.json:
        show_json({"before": done.before, "after": done.after, "copy": str(done.copy) if done.copy else None})
    else:
        show(_words(done))
    return 0


def _words(done: "Migrated") -> str:
    if done.before == done.after:
        return f"the store is at revision {done.after} already; nothing was done"
    if done.before is None:
        return f"made the tables, at revision {done.after}"
    copied = f"; what was there before is in {done.copy}" if done.copy else ""
    return f"changed the tables from revision {done.before} to {done.after}{copied}"
