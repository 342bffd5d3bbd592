"""Makes the service's app: an `ExecutorApp` with the executors that plugin folders hold themselves."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tiny_harness.errors import ConfigError, RegistryError
from tiny_harness.executors import ExecutorApp
from tiny_harness.hooks.executor import DEFAULT_DEADLINE_S
from tiny_harness.plugins import Plugin, load_plugins, log_reports

DEFAULT_NAME: Final = "hooks"


def create_app(
    plugins: Sequence[Path],
    *,
    name: str = DEFAULT_NAME,
    keys: Sequence[str] = (),
    deadline_s: float = DEFAULT_DEADLINE_S,
) -> ExecutorApp:
    """Load plugins and serve their local executors; which of them are called, and when, is the harness's business.

    Args:
        plugins: Folders. One that cannot be loaded is logged and left out.
        name: Of the service.
        keys: Ids of the keys that callers may sign with; default: one of the service's name.
        deadline_s: Seconds that an executor may take which does not say it itself.

    Raises:
        ConfigError: There is nothing to serve, or two plugins have one name.
    """
    loaded, rejected = load_plugins(plugins, deadline_s=deadline_s)
    log_reports((*(plugin.report for plugin in loaded), *rejected))
    try:
        app = ExecutorApp(name, keys=keys)
        for plugin in loaded:
            _include(app, plugin)
    except RegistryError as error:
        raise ConfigError(str(error)) from error
    if not app.executors:
        raise ConfigError("none of the plugins has an executor that runs here: there is nothing to serve")
    return app


def _include(app: ExecutorApp, plugin: Plugin) -> None:
    bodies = {executor.command for executor in plugin.executors if executor.point == "command.invoked.in"}
    for executor in plugin.executors:
        app.include(executor)
    for spec in plugin.commands:
        if spec.name in bodies:
            app.offer(spec)
