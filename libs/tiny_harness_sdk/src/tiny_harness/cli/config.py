"""`tiny-harness config`: where the configuration is and what a key means."""

import argparse
from pathlib import Path

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
        show_json({"path": str(found.path), "origin": found.origin, "exists": found.path.exists()})
    else:
        show(str(found.path))
    return 0


def _explain(args: argparse.Namespace) -> int:
    from tiny_harness.config_file import default_config, explain, read_settings
    from tiny_harness.settings import Settings

    found = resolve_config(args.config)
    there = found.path.exists() or not found.is_default
    settings = read_settings(Settings, found.path) if there else Settings()
    told = explain(settings, args.key)
    told["file"] = str(found.path) if there else f"{found.path} (not there yet: defaults of the program)"
    del default_config
    if args.json:
        show_json(told)
        return 0
    for name, value in told.items():
        show(f"{name}: {'not set' if value is None else value if not isinstance(value, Path) else str(value)}")
    return 0
