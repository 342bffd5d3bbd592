"""`tiny-harness hooks check`: tells whether a service, in any language, speaks the remote contract."""

import argparse
from typing import TYPE_CHECKING, Final

from tiny_harness.cli.output import show, show_error, show_json, show_table
from tiny_harness.cli.start import run_async

if TYPE_CHECKING:
    from pydantic import SecretStr

    from tiny_harness.hooks.conformance import Finding

NAME = "check"
HELP = "check a service against the remote contract; calls each of its executors with made-up contexts"

TRANSPORTS: Final = ("jsonrpc", "mcp")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("url", metavar="URL", help="where the service answers, such as http://127.0.0.1:8090/rpc")
    parser.add_argument("--transport", choices=TRANSPORTS, default="jsonrpc", help="default: jsonrpc")
    parser.add_argument(
        "--key-id", metavar="ID", help="sign with this key; its secret is in TINY_HARNESS_HOOK_SECRET_<ID>"
    )
    parser.add_argument("--unsigned", action="store_true", help="sign nothing, and check nothing about signatures")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Check; the status is 1 if a rule is broken, and 2 if there is nothing to sign with."""
    from tiny_harness.errors import ConfigError
    from tiny_harness.hooks.delivery import address_fault

    fault = address_fault(args.url)
    if fault:
        raise ConfigError(f"{args.url!r} {fault}")
    return run_async(_check(args, _secret(args)))


def _secret(args: argparse.Namespace) -> "SecretStr | None":
    from tiny_harness.errors import ConfigError
    from tiny_harness.hooks.signature import secret_variable, secrets_for

    if args.unsigned:
        return None
    if not args.key_id:
        raise ConfigError("give --key-id, a key that the service knows; or --unsigned")
    secret = next(iter(secrets_for(args.key_id)), None)
    if secret is None:
        raise ConfigError(f"there is no secret to sign with: set {secret_variable(args.key_id)}; or give --unsigned")
    return secret


async def _check(args: argparse.Namespace, secret: "SecretStr | None") -> int:
    from tiny_harness.hooks.conformance import Unreachable, check

    try:
        findings = await check(args.url, args.transport, key_id=args.key_id or "", secret=secret)
    except Unreachable as error:
        show_error(f"tiny-harness: {error}")
        return 1
    _show(findings, as_json=args.json)
    return 1 if any(finding.outcome == "failed" for finding in findings) else 0


def _show(findings: "list[Finding]", *, as_json: bool) -> None:
    if as_json:
        show_json([{"rule": f.rule, "outcome": f.outcome, "why": f.why, "says": f.says} for f in findings])
        return
    show_table(("RULE", "OUTCOME", "WHY"), [(f.rule, f.outcome, f.why) for f in findings])
    broken = [finding for finding in findings if finding.outcome == "failed"]
    for finding in broken:
        show(f"\n{finding.rule}: {finding.says}")
    show(f"\n{len(broken)} of {len(findings)} rules are broken" if broken else "\nconforms")
