"""`tiny-harness config`: where the configuration is and what a key means."""

import argparse
from typing import Any

from tiny_harness.cli.output import show, show_json
from tiny_harness.paths import resolve_config

NAME = "config"
HELP = "show where the configuration is, or explain a key"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    verbs = parser.add_subparsers(title="verbs", metavar="VERB", required=True, dest="verb")
    verbs.add_parser("path", help="print the path of the configuration file in effect")
    verbs.add_parser("explain", help="explain a key").add_argument("key", metavar="KEY", help="such as server.bind")
    for sub in verbs.choices.values():
        sub.add_argument("--json", action="store_true", help="print JSON")
        sub.add_argument("--config", metavar="PATH", default=argparse.SUPPRESS, help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    """Run a verb; makes nothing."""
    return _path(args) if args.verb == "path" else _explain(args)


def _path(args: argparse.Namespace) -> int:
    found = resolve_config(args.config)
    if args.json:
        show_json({"path": str(found.path), "origin": found.origin, "exists": found.exists})
    else:
        show(str(found.path))
    return 0


def _explain(args: argparse.Namespace) -> int:
    from tiny_harness.config_file import explain, planned_settings
    from tiny_harness.settings import Settings

    found = resolve_config(args.config)
    is_planned = found.is_default and not found.exists
    told = explain(planned_settings(found.path.parent) if is_planned else Settings.load(found.path), args.key)
    told["file"] = f"{found.path}{' (not there yet; the first start makes it)' if is_planned else ''}"
    if args.json:
        show_json(told)
        return 0
    for name, value in told.items():
        show(f"{name}: {_words(value)}")
    return 0


def _words(value: Any) -> str:
    if value is None:
        return "not set"
    if isinstance(value, bool):  # as TOML writes it
        return str(value).lower()
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
