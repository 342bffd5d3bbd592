"""The built-in plugin: the first of all, so that nobody can take its commands' names (R6a.3)."""

from tiny_harness._version import __version__
from tiny_harness.commands.builtin import BUILTIN_COMMANDS, builtin_executors
from tiny_harness.plugins.plugin import Plugin


def builtin_plugin() -> Plugin:
    """Make the plugin of the built-in commands. Their role policy needs all specs: whoever has these makes it."""
    return Plugin(
        name="builtin",
        version=__version__,
        description="The commands that ship with tiny-harness",
        commands=BUILTIN_COMMANDS,
        executors=builtin_executors(),
    )
