"""`tiny-harness worker`: the engine alone, for a Temporal server by address."""

import argparse

from tiny_harness.cli.start import load_settings, run_async
from tiny_harness.paths import resolve_config

NAME = "worker"
HELP = "run the engine alone, beside a `serve` on a remote Temporal"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments: there are none."""


def run(args: argparse.Namespace) -> int:
    """Work until SIGTERM, SIGHUP or SIGINT."""
    return run_async(_run(args), stopped=0, may_hurry=True)


async def _run(args: argparse.Namespace) -> int:
    settings = load_settings(args, create=True)
    path = str(resolve_config(args.config).path)
    if settings.temporal.mode == "embedded":
        from tiny_harness.errors import ConfigError

        reason = "with an embedded Temporal server the engine runs inside `tiny-harness serve`"
        raise ConfigError(reason, file=path, key="temporal.mode")
    import asyncio

    from tiny_harness.config_file import require_model_key
    from tiny_harness.local import running_worker
    from tiny_harness.logs import configure_logs

    require_model_key(settings, file=path)
    configure_logs(settings.o11y, is_service=True, variables=settings.secret_variables)
    async with running_worker(settings):
        print(f"working on {settings.temporal.address}, queue {settings.temporal.task_queue}", flush=True)
        await asyncio.Event().wait()
    return 0
