"""Finds the app that a command line names."""

import sys
from importlib import import_module
from pathlib import Path

from tiny_harness.errors import ConfigError
from tiny_harness.executors.app import ExecutorApp


def load_app(target: str) -> ExecutorApp:
    """Import `MODULE:APP`; the module may be in the current folder.

    Raises:
        ConfigError: There is no such module, or no app of that name in it.
    """
    module_name, colon, name = target.partition(":")
    if not (colon and name.isidentifier() and all(part.isidentifier() for part in module_name.split("."))):
        raise ConfigError(f"{target!r} is no MODULE:APP, such as deploys:app")
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        module = import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise  # something that the module itself wants: its traceback helps
        raise ConfigError(f"there is no module {module_name!r} here") from error
    app = getattr(module, name, None)
    if not isinstance(app, ExecutorApp):
        raise ConfigError(f"{target}: {'is no ExecutorApp' if app is not None else f'there is no {name!r} in it'}")
    return app
