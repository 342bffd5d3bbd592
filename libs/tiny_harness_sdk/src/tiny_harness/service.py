"""A service as a process: reads its configuration, runs until it is told to stop, and says in one line why it cannot.

Told to stop once, it drains; told again, it ends at once.
"""

import argparse
import json
import logging
import os
import sys
import traceback
from collections.abc import Callable, Coroutine, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NoReturn

from tiny_harness.cli.start import run_async
from tiny_harness.errors import AlreadyRunning, ConfigError, HarnessError, Unavailable
from tiny_harness.logs import configure_logs
from tiny_harness.paths import resolve_config
from tiny_harness.redact import Redactor, configured_secrets
from tiny_harness.settings import Settings

EXIT_FAILED: Final = 1
EXIT_USAGE: Final = 2

Serve = Callable[[Settings], Coroutine[Any, Any, None]]


def run_service(name: str, about: str, serve: Serve, argv: Sequence[str] | None = None) -> NoReturn:
    """Run a service that has a configuration file, as a program.

    Args:
        name: Of its package.
        about: What it does, for `--help`.
        serve: Serves until cancelled; a cancel lets it drain.
        argv: The words behind the program's name; default: those of this process.
    """
    parser = argparse.ArgumentParser(prog=f"python -m {name}", description=about)
    parser.add_argument("--config", metavar="PATH", help="configuration file (default: ~/.tiny-harness/config.toml)")
    args = parser.parse_args(argv)

    async def work() -> int:
        settings = Settings.load(resolve_config(args.config).path)
        configure_logs(settings.o11y, is_service=True, variables=settings.secret_variables)
        await serve(settings)
        return 0

    end_process(run_work(name, work()))


def run_work(name: str, work: Coroutine[Any, Any, int]) -> int:
    """Run a service's work; returns the exit status: 0 stopped, 1 failed, 2 usage or configuration."""
    try:
        return run_async(work, stopped=0, may_hurry=True)
    except HarnessError as error:
        print(_line(name, error), file=sys.stderr)
        return EXIT_USAGE if isinstance(error, ConfigError | AlreadyRunning) else EXIT_FAILED
    except Exception:  # noqa: BLE001 - the process's edge: a defect of ours, with its traceback
        traceback.print_exc()
        return EXIT_FAILED


def end_process(status: int) -> NoReturn:
    """End this process the short way: one that used Temporal's client may abort at exit, and a hook may hang."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    logging.shutdown()
    os._exit(status)


def _line(name: str, error: HarnessError) -> str:
    """Tell why there is no service, in one line of the same form as the log's."""
    place = {"file": error.file, "key": error.key} if isinstance(error, ConfigError) else {}
    line = {
        "at": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "level": "error",
        "logger": name,
        "message": error.reason if isinstance(error, Unavailable) else str(error),
        "code": error.code,
        **{word: value for word, value in place.items() if value},
    }
    mask = Redactor(configured_secrets(os.environ)).by_value_and_shape
    return json.dumps(mask(line), ensure_ascii=False)
