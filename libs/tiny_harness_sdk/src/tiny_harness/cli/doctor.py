"""`tiny-harness doctor`: looks at everything a start needs, and changes nothing."""

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from tiny_harness.cli.output import show, show_json
from tiny_harness.cli.start import add_target, ask_for_token, home_of, open_target
from tiny_harness.paths import check_home, resolve_config

if TYPE_CHECKING:
    from tiny_harness.plugins import PluginReport
    from tiny_harness.settings import Settings

NAME = "doctor"
HELP = "check configuration, key, home, Temporal, disk and plugins"

MIN_FREE_BYTES: Final = 100_000_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_target(parser)


def run(args: argparse.Namespace) -> int:
    """Check; the status is 1 if something is wrong. With `--url` only the harness there is looked at."""
    if args.url:
        ask_for_token(args)
        return _tell([("sign-in", *_try(lambda: _sign_in(args)))], as_json=args.json)
    found = resolve_config(args.config)
    settings: list[Settings] = []

    def configuration() -> str:
        from tiny_harness.config_file import planned_settings
        from tiny_harness.settings import Settings

        if found.is_default and not found.exists:
            settings.append(planned_settings(found.path.parent))
            return f"{found.path} is not there yet; the first start makes it"
        settings.append(Settings.load(found.path))
        return str(found.path)

    checks: dict[str, Callable[[], str]] = {"configuration": configuration}
    if found.is_default:
        checks["home"] = _home
    checks |= {
        "model": lambda: _model(settings[0], str(found.path)),
        "temporal": lambda: _temporal(settings[0]),
        "disk": lambda: _disk(settings[0]),
    }
    results = [(name, *_try(check)) for name, check in checks.items()]
    results += _plugins(settings[0]) if settings else []
    results.append(("harness", *_try(lambda: _harness(settings[0]))))
    return _tell(results, as_json=args.json)


def _tell(results: list[tuple[str, bool, str]], *, as_json: bool) -> int:
    if as_json:
        show_json([{"check": name, "ok": ok, "detail": detail} for name, ok, detail in results])
    else:
        for name, ok, detail in results:
            show(f"{'ok  ' if ok else 'FAIL'}  {name}: {detail}")
    return 0 if all(ok for _, ok, _ in results) else 1


def _try(check: Callable[[], str]) -> tuple[bool, str]:
    from tiny_harness.errors import HarnessError

    try:
        return True, check()
    except HarnessError as error:
        return False, str(error)
    except IndexError:
        return False, "not checked: the configuration cannot be read"


def _sign_in(args: argparse.Namespace) -> str:
    """Sign in at `--url`, and say as whom."""
    import asyncio

    from tiny_harness.client import connect

    async def name() -> str:
        async with open_target(args) as (address, participant), connect(address, participant) as client:
            await client.tasks(limit=1)
            return client.participant

    return f"{args.url} knows you as {asyncio.run(name())}"


def _home() -> str:
    check_home()
    return "yours alone"


def _model(settings: "Settings", path: str) -> str:
    from tiny_harness.config_file import require_model_key
    from tiny_harness.settings import HostedModels

    require_model_key(settings, file=path)
    choice = settings.choice
    return f"{choice.model} at {choice.url}" if isinstance(choice, HostedModels) else "scripted"


def _temporal(settings: "Settings") -> str:
    if settings.temporal.mode == "remote":
        return f"remote, at {settings.temporal.address}"
    from tiny_harness.temporal.embedded import find_binary

    return f"embedded, {find_binary()}"


def _disk(settings: "Settings") -> str:
    import shutil

    folder = home_of(settings)
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    if free < MIN_FREE_BYTES:
        from tiny_harness.errors import ConfigError

        raise ConfigError(f"only {free // 1_000_000} MB are left: new messages are refused", file=str(folder))
    return f"{free // 1_000_000} MB free"


def _plugins(settings: "Settings") -> list[tuple[str, bool, str]]:
    """Load the plugins as a start does, beside the built-in one, and tell what became of each."""
    if not settings.plugins:
        return []
    from tiny_harness.plugins import builtin_plugin, load_plugins, resolve

    plugins, rejected = load_plugins(settings.plugins, deadline_s=settings.hooks.deadline)
    _, [_, *resolved] = resolve((builtin_plugin(), *plugins))
    return [(f"plugin {report.plugin}", not report.problems, _told(report)) for report in (*resolved, *rejected)]


def _told(report: "PluginReport") -> str:
    if report.problems:
        return f"{report.path}: {report.state}; " + "; ".join(report.problems)
    parts = [
        f"{part.kind} {part.name}{'' if part.state == 'loaded' else f' ({part.reason})'}" for part in report.components
    ]
    return f"{report.path}: {', '.join(parts) or 'it has nothing in it'}"


def _harness(settings: "Settings") -> str:
    from tiny_harness.host import find_host

    live = find_host(home_of(settings))
    return f"running, reached at {live.socket}" if live else "not running"
