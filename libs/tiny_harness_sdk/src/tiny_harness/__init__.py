"""tiny-harness: a durable agent harness whose unit of work is an A2A task that stays open.

Names are resolved when they are first used: `import tiny_harness` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tiny_harness._version import __version__

if TYPE_CHECKING:
    from tiny_harness.address import Address
    from tiny_harness.client import HarnessClient, TaskView, TurnResult, connect
    from tiny_harness.config_file import default_config, require_model_key
    from tiny_harness.errors import (
        AlreadyRunning,
        ConfigError,
        ConnectionLost,
        HarnessError,
        InvalidInput,
        RoleNotPermitted,
        TaskEnded,
        TaskNotCancelable,
        TaskNotFound,
        Unavailable,
    )
    from tiny_harness.host import find_host
    from tiny_harness.local import RunningHarness, open_harness, running_harness, running_worker
    from tiny_harness.paths import ConfigPath, default_home, prepare_home, resolve_config
    from tiny_harness.settings import Settings
    from tiny_harness.states import AWAITING_ANSWER, AWAITING_NEXT_MESSAGE, TaskState, describe
    from tiny_harness.store import open_store

__all__ = [
    "AWAITING_ANSWER",
    "AWAITING_NEXT_MESSAGE",
    "Address",
    "AlreadyRunning",
    "ConfigError",
    "ConfigPath",
    "ConnectionLost",
    "HarnessClient",
    "HarnessError",
    "InvalidInput",
    "RoleNotPermitted",
    "RunningHarness",
    "Settings",
    "TaskEnded",
    "TaskNotCancelable",
    "TaskNotFound",
    "TaskState",
    "TaskView",
    "TurnResult",
    "Unavailable",
    "__version__",
    "connect",
    "default_config",
    "default_home",
    "describe",
    "find_host",
    "open_harness",
    "open_store",
    "prepare_home",
    "require_model_key",
    "resolve_config",
    "running_harness",
    "running_worker",
]

_MODULES = {
    "address": ("Address",),
    "client": ("HarnessClient", "TaskView", "TurnResult", "connect"),
    "config_file": ("default_config", "require_model_key"),
    "errors": (
        "AlreadyRunning",
        "ConfigError",
        "ConnectionLost",
        "HarnessError",
        "InvalidInput",
        "RoleNotPermitted",
        "TaskEnded",
        "TaskNotCancelable",
        "TaskNotFound",
        "Unavailable",
    ),
    "host": ("find_host",),
    "local": ("RunningHarness", "open_harness", "running_harness", "running_worker"),
    "paths": ("ConfigPath", "default_home", "prepare_home", "resolve_config"),
    "settings": ("Settings",),
    "states": ("AWAITING_ANSWER", "AWAITING_NEXT_MESSAGE", "TaskState", "describe"),
    "store": ("open_store",),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'tiny_harness' has no attribute {name!r}")
    return getattr(import_module(f"tiny_harness.{_HOMES[name]}"), name)
