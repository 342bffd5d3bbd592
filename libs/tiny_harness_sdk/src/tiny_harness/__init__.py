"""tiny-harness: a durable agent harness whose unit of work is an A2A task that stays open.

Names are resolved when they are first used: `import tiny_harness` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tiny_harness._version import __version__

if TYPE_CHECKING:
    from tiny_harness.address import Address
    from tiny_harness.client import CommandAnswer, HarnessClient, Question, TaskView, TurnResult, connect
    from tiny_harness.commands import CommandRegistry, CommandSpec
    from tiny_harness.commands.builtin import BUILTIN_COMMANDS, builtin_executors
    from tiny_harness.config_file import default_config, require_model_key
    from tiny_harness.effects import AddParticipant, CommandResult, CreateSubTask, SetEffort, SetModel
    from tiny_harness.errors import (
        AlreadyAnswered,
        AlreadyRunning,
        CommandFailed,
        ConfigError,
        ConnectionLost,
        HarnessError,
        HookAbort,
        HookFailed,
        HookTransportError,
        InvalidInput,
        RefusedByPolicy,
        RegistryError,
        RoleNotPermitted,
        SignInRefused,
        TaskEnded,
        TaskNotCancelable,
        TaskNotFound,
        Unavailable,
        UnresolvedSubTasks,
    )
    from tiny_harness.executors import ExecutorApp, load_app, serving_executors
    from tiny_harness.ext.commands import CommandOffer
    from tiny_harness.hooks import OPERATIONS, Executor, call_function
    from tiny_harness.hooks.contexts import (
        CommandContext,
        CompletionContext,
        HookContext,
        ModelContext,
        ObservedContext,
        RequestContext,
        TaskCreatedContext,
        WindowContext,
    )
    from tiny_harness.host import find_host
    from tiny_harness.local import RunningHarness, open_harness, running_harness, running_worker
    from tiny_harness.paths import ConfigPath, default_home, prepare_home, resolve_config
    from tiny_harness.plugins import Plugin, PluginReport, RemoteDeclaration, load_plugins
    from tiny_harness.settings import Settings
    from tiny_harness.states import (
        AWAITING_ANSWER,
        AWAITING_APPROVAL,
        AWAITING_BUDGET,
        AWAITING_NEXT_MESSAGE,
        TaskState,
        describe,
    )
    from tiny_harness.store import open_store

__all__ = [
    "AWAITING_ANSWER",
    "AWAITING_APPROVAL",
    "AWAITING_BUDGET",
    "AWAITING_NEXT_MESSAGE",
    "BUILTIN_COMMANDS",
    "OPERATIONS",
    "AddParticipant",
    "Address",
    "AlreadyAnswered",
    "AlreadyRunning",
    "CommandAnswer",
    "CommandContext",
    "CommandFailed",
    "CommandOffer",
    "CommandRegistry",
    "CommandResult",
    "CommandSpec",
    "CompletionContext",
    "ConfigError",
    "ConfigPath",
    "ConnectionLost",
    "CreateSubTask",
    "Executor",
    "ExecutorApp",
    "HarnessClient",
    "HarnessError",
    "HookAbort",
    "HookContext",
    "HookFailed",
    "HookTransportError",
    "InvalidInput",
    "ModelContext",
    "ObservedContext",
    "Plugin",
    "PluginReport",
    "Question",
    "RefusedByPolicy",
    "RegistryError",
    "RemoteDeclaration",
    "RequestContext",
    "RoleNotPermitted",
    "RunningHarness",
    "SetEffort",
    "SetModel",
    "Settings",
    "SignInRefused",
    "TaskCreatedContext",
    "TaskEnded",
    "TaskNotCancelable",
    "TaskNotFound",
    "TaskState",
    "TaskView",
    "TurnResult",
    "Unavailable",
    "UnresolvedSubTasks",
    "WindowContext",
    "__version__",
    "builtin_executors",
    "call_function",
    "connect",
    "default_config",
    "default_home",
    "describe",
    "find_host",
    "load_app",
    "load_plugins",
    "open_harness",
    "open_store",
    "prepare_home",
    "require_model_key",
    "resolve_config",
    "running_harness",
    "running_worker",
    "serving_executors",
]

_MODULES = {
    "address": ("Address",),
    "client": ("CommandAnswer", "HarnessClient", "Question", "TaskView", "TurnResult", "connect"),
    "commands": ("CommandRegistry", "CommandSpec"),
    "commands.builtin": ("BUILTIN_COMMANDS", "builtin_executors"),
    "config_file": ("default_config", "require_model_key"),
    "effects": ("AddParticipant", "CommandResult", "CreateSubTask", "SetEffort", "SetModel"),
    "errors": (
        "AlreadyAnswered",
        "AlreadyRunning",
        "CommandFailed",
        "ConfigError",
        "ConnectionLost",
        "HarnessError",
        "HookAbort",
        "HookFailed",
        "HookTransportError",
        "InvalidInput",
        "RefusedByPolicy",
        "RegistryError",
        "RoleNotPermitted",
        "SignInRefused",
        "TaskEnded",
        "TaskNotCancelable",
        "TaskNotFound",
        "Unavailable",
        "UnresolvedSubTasks",
    ),
    "executors": ("ExecutorApp", "load_app", "serving_executors"),
    "ext.commands": ("CommandOffer",),
    "hooks": ("OPERATIONS", "Executor", "call_function"),
    "hooks.contexts": (
        "CommandContext",
        "CompletionContext",
        "HookContext",
        "ModelContext",
        "ObservedContext",
        "RequestContext",
        "TaskCreatedContext",
        "WindowContext",
    ),
    "host": ("find_host",),
    "local": ("RunningHarness", "open_harness", "running_harness", "running_worker"),
    "paths": ("ConfigPath", "default_home", "prepare_home", "resolve_config"),
    "plugins": ("Plugin", "PluginReport", "RemoteDeclaration", "load_plugins"),
    "settings": ("Settings",),
    "states": (
        "AWAITING_ANSWER",
        "AWAITING_APPROVAL",
        "AWAITING_BUDGET",
        "AWAITING_NEXT_MESSAGE",
        "TaskState",
        "describe",
    ),
    "store": ("open_store",),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'tiny_harness' has no attribute {name!r}")
    return getattr(import_module(f"tiny_harness.{_HOMES[name]}"), name)
