"""`tiny-harness backup`: a copy of the store, which is all there is to save."""

import argparse
from pathlib import Path

from tiny_harness.cli.output import show
from tiny_harness.cli.start import load_settings

NAME = "backup"
HELP = "copy the store to a new file, also while a harness runs"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("file", metavar="FILE", help="the copy; must not exist")


def run(args: argparse.Namespace) -> int:
    """Copy."""
    settings = load_settings(args, create=False)
    source, target = settings.store.sqlite_path, Path(args.file)
    from tiny_harness.errors import ConfigError
    from tiny_harness.store.open import store_url
    from tiny_harness.store.sqlite import copy_database

    if store_url(settings) is not None:
        raise ConfigError("a store on PostgreSQL is backed up by the means of that server, such as pg_dump")
    if not source.exists():
        raise ConfigError("there is no store yet, so nothing to copy", file=str(source))
    try:
        copy_database(source, target)
    except OSError as error:
        raise ConfigError(f"cannot be written ({error.strerror})", file=str(target)) from error
    show(f"copied {source} to {target} ({target.stat().st_size // 1000} kB)")
    return 0
