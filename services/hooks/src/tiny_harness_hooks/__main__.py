"""`python -m tiny_harness_hooks --plugin DIR --bind HOST:PORT`: serves until told to stop."""

import argparse
import asyncio
from collections.abc import Sequence
from pathlib import Path

from tiny_harness.executors import DEFAULT_BIND, Certificate, serving_executors
from tiny_harness.logs import configure_logs
from tiny_harness.service import end_process, run_work
from tiny_harness.settings import ObservabilitySettings
from tiny_harness_hooks.app import DEFAULT_NAME, create_app


def main(argv: Sequence[str] | None = None) -> int:
    """Run the service; returns the exit status: 0 stopped, 1 failed, 2 usage or configuration."""
    args = _parser().parse_args(argv)
    configure_logs(ObservabilitySettings(), is_service=True)
    return run_work("tiny_harness_hooks", _serve(args))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tiny_harness_hooks", description="Serve plugins' executors.")
    parser.add_argument("--plugin", action="append", type=Path, required=True, metavar="DIR", help="may be repeated")
    parser.add_argument("--bind", default=DEFAULT_BIND, metavar="HOST:PORT", help=f"default: {DEFAULT_BIND}")
    parser.add_argument("--name", default=DEFAULT_NAME, help=f"of the service (default: {DEFAULT_NAME})")
    key = "key that callers may sign with (default: the name); may be repeated"
    parser.add_argument("--key", action="append", default=[], metavar="ID", help=key)
    parser.add_argument("--tls-cert", type=Path, metavar="FILE", help="serve https, with this certificate in PEM")
    parser.add_argument("--tls-key", type=Path, metavar="FILE", help="its key")
    parser.add_argument("--unsigned", action="store_true", help="take calls without a signature; on loopback only")
    return parser


async def _serve(args: argparse.Namespace) -> int:
    app = create_app(args.plugin, name=args.name, keys=args.key)
    certificate = Certificate.given(args.tls_cert, args.tls_key)
    async with serving_executors(app, args.bind, unsigned=args.unsigned, certificate=certificate) as url:
        print(f"serving {url}", flush=True)
        await asyncio.Event().wait()
    return 0


if __name__ == "__main__":
    end_process(main())
