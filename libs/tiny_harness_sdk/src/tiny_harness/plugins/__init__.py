"""Plugins: commands, hooks and words that others add, from a folder or from code (DESIGN: plugins)."""

from tiny_harness.hooks.declaration import RemoteDeclaration
from tiny_harness.plugins.builtin import builtin_plugin
from tiny_harness.plugins.loading import load_plugin, load_plugins
from tiny_harness.plugins.plugin import Plugin
from tiny_harness.plugins.report import Component, PluginReport, log_reports
from tiny_harness.plugins.resolve import resolve
from tiny_harness.plugins.servers import HttpServer, Server, StdioServer

__all__ = [
    "Component",
    "HttpServer",
    "Plugin",
    "PluginReport",
    "RemoteDeclaration",
    "Server",
    "StdioServer",
    "builtin_plugin",
    "load_plugin",
    "load_plugins",
    "log_reports",
    "resolve",
]
