"""`tiny-harness serve`: a harness for others, until told to stop."""

import argparse
import sys

from tiny_harness.cli.start import home_of, load_settings, run_async
from tiny_harness.paths import resolve_config

NAME = "serve"
HELP = "serve A2A on [server] bind"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "--with-worker", action="store_true", help="run the engine in this process too (embedded Temporal always does)"
    )


def run(args: argparse.Namespace) -> int:
    """Serve until SIGTERM, SIGHUP or SIGINT."""
    return run_async(_run(args), stopped=0, may_hurry=True)


async def _run(args: argparse.Namespace) -> int:
    settings = load_settings(args, create=True)
    import asyncio

    from tiny_harness.config_file import require_model_key
    from tiny_harness.local import running_harness
    from tiny_harness.logs import configure_logs

    with_worker = args.with_worker or settings.temporal.mode == "embedded"
    if with_worker:
        require_model_key(settings, file=str(resolve_config(args.config).path))
    configure_logs(settings.o11y, is_service=True, variables=settings.secret_variables)
    home = home_of(settings)
    async with running_harness(settings, home=home, serve_tcp=True, worker=with_worker) as harness:
        print(f"serving {harness.url}", flush=True)
        print(_page(f"{harness.url}/ui/", harness.token), file=sys.stderr, flush=True)
        if harness.token:
            print(f"clients show the token in {home / 'token'}", file=sys.stderr, flush=True)
        if settings.auth.mode == "none":
            print('warning: [auth] mode = "none": whoever reaches this port is believed', file=sys.stderr, flush=True)
        await asyncio.Event().wait()
    return 0


def _page(url: str, token: str | None) -> str:
    """Say where the page is; the address lets a person in, but a token does not belong into a log."""
    return f"page    {url}#token={token}" if token and sys.stderr.isatty() else f"page    {url}"
