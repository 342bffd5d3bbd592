"""`tiny-harness tokens`: make, list and revoke the bearer tokens of `[auth] mode = "tokens"`."""

import argparse
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from tiny_harness.cli.output import show, show_error, show_json, show_table
from tiny_harness.cli.start import load_settings, run_async

if TYPE_CHECKING:
    from tiny_harness.store import KeptToken

NAME = "tokens"
HELP = "make, list and revoke bearer tokens"

MAX_DAYS: Final = 36_500
SHOWN_CHARACTERS: Final = 16
"""Of a time: up to its minutes."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    verbs = parser.add_subparsers(title="verbs", metavar="VERB", required=True, dest="verb")
    create = verbs.add_parser("create", aliases=["add"], help="make a token for somebody; it is shown once")
    create.add_argument("participant", metavar="PARTICIPANT", help="who speaks with it")
    create.add_argument("--kind", choices=["human", "agent"], default="human", help="what they are (default: human)")
    create.add_argument("--days", type=_days, help="days after which it ends (default: never)")
    create.add_argument("--note", default="", help="what it is for")
    verbs.add_parser("list", help="list all tokens, without the tokens themselves")
    verbs.add_parser("revoke", help="let a token in no more, at once").add_argument("token", metavar="ID")
    for sub in set(verbs.choices.values()):
        sub.add_argument("--json", action="store_true", help="print JSON")
        sub.add_argument("--config", metavar="PATH", default=argparse.SUPPRESS, help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    """Run a verb."""
    verbs = {"list": _list, "revoke": _revoke}
    return run_async(verbs.get(args.verb, _create)(args))


async def _create(args: argparse.Namespace) -> int:
    from tiny_harness.store import open_store
    from tiny_harness.tokens import create_token

    settings = load_settings(args, create=True)
    lifetime = timedelta(days=args.days) if args.days else None
    async with open_store(settings) as store:
        made = await create_token(store, args.participant, args.kind, note=args.note, lifetime=lifetime)
    if args.json:
        show_json({"token_id": made.token_id, "token": made.token, "participant": args.participant, "kind": args.kind})
    else:
        show(made.token)
        show_error(f"{made.token_id}: shown this once; {args.participant} signs in with --token or TINY_HARNESS_TOKEN")
    if settings.auth.mode != "tokens":
        show_error(f'note: tokens let in with [auth] mode = "tokens"; it is "{settings.auth.mode}"')
    return 0


async def _list(args: argparse.Namespace) -> int:
    from tiny_harness.store import open_store

    async with open_store(load_settings(args, create=True)) as store:
        found = await store.tokens()
    if args.json:
        show_json([_json(token) for token in found])
    elif found:
        show_table(("ID", "PARTICIPANT", "KIND", "STATE", "MADE (UTC)", "ENDS (UTC)", "NOTE"), _rows(found))
    else:
        show("no tokens yet")
    return 0


async def _revoke(args: argparse.Namespace) -> int:
    from tiny_harness.store import open_store

    async with open_store(load_settings(args, create=True)) as store:
        is_found = await store.revoke_token(args.token)
    if not is_found:
        show_error(f"tiny-harness: there is no token {args.token}; `tiny-harness tokens list` names them")
        return 1
    if args.json:
        show_json({"token_id": args.token, "state": "revoked"})
    else:
        show(f"revoked {args.token}")
    return 0


def _state(token: "KeptToken") -> str:
    if token.revoked_at is not None:
        return "revoked"
    return "expired" if token.is_expired else "valid"


def _rows(found: Sequence["KeptToken"]) -> list[tuple[str, ...]]:
    return [
        (
            token.token_id,
            token.participant_id,
            token.kind,
            _state(token),
            _minute(token.created_at),
            _minute(token.expires_at),
            token.note,
        )
        for token in found
    ]


def _json(token: "KeptToken") -> dict[str, Any]:
    return {
        "token_id": token.token_id,
        "participant": token.participant_id,
        "kind": token.kind,
        "state": _state(token),
        "created_at": token.created_at,
        "expires_at": token.expires_at,
        "revoked_at": token.revoked_at,
        "note": token.note,
    }


def _minute(time: datetime | None) -> str:
    return "never" if time is None else time.isoformat(" ")[:SHOWN_CHARACTERS]


def _days(text: str) -> float:
    try:
        days = float(text)
    except ValueError:
        days = 0.0
    if not 0 < days <= MAX_DAYS:
        raise argparse.ArgumentTypeError(f"must be a number of days above 0, {MAX_DAYS} at most")
    return days
