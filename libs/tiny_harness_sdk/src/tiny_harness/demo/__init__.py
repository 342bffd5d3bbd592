"""What the demo's agent works with: a plugin for a small shop's support desk, and the shop's two MCP servers."""

from tiny_harness.demo.plugin_folder import PLUGIN, ledger

__all__ = ["PLUGIN", "ledger"]
