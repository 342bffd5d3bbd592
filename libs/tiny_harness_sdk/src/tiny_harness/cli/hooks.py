"""`tiny-harness hooks`: serve executors and commands of your own, or check a service that does."""

import argparse

from tiny_harness.cli import hooks_check
from tiny_harness.cli.start import run_async

NAME = "hooks"
HELP = "serve your own hooks and commands, or check a service that does"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    verbs = parser.add_subparsers(title="verbs", metavar="VERB", required=True, dest="verb")
    serve = verbs.add_parser("serve", help="serve an ExecutorApp over JSON-RPC and MCP")
    serve.add_argument("app", metavar="MODULE:APP", help="such as deploys:app; MODULE may be in this folder")
    serve.add_argument("--bind", metavar="HOST:PORT", help="where to listen (default: 127.0.0.1:8090)")
    serve.add_argument("--tls-cert", metavar="FILE", help="serve https, with this certificate in PEM")
    serve.add_argument("--tls-key", metavar="FILE", help="its key")
    serve.add_argument("--unsigned", action="store_true", help="take calls without a signature; on loopback only")
    check = verbs.add_parser(hooks_check.NAME, help=hooks_check.HELP, description=hooks_check.HELP)
    hooks_check.add_arguments(check)
    for sub in verbs.choices.values():
        sub.add_argument("--config", metavar="PATH", default=argparse.SUPPRESS, help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    """Run a verb; makes no home."""
    if args.verb == hooks_check.NAME:
        return hooks_check.run(args)
    return run_async(_serve(args), stopped=0, may_hurry=True)


async def _serve(args: argparse.Namespace) -> int:
    """Serve until SIGTERM, SIGHUP or SIGINT."""
    import asyncio

    from tiny_harness.executors import DEFAULT_BIND, Certificate, load_app, serving_executors
    from tiny_harness.logs import configure_logs
    from tiny_harness.settings import ObservabilitySettings

    configure_logs(ObservabilitySettings(), is_service=True)
    app, bind = load_app(args.app), args.bind or DEFAULT_BIND
    certificate = Certificate.given(args.tls_cert, args.tls_key)
    async with serving_executors(app, bind, unsigned=args.unsigned, certificate=certificate) as url:
        print(f"serving {url}", flush=True)
        await asyncio.Event().wait()
    return 0
