"""Tools from MCP servers: listed, called, kept alive (DESIGN: agent core). The registry is the only way to them."""

from tiny_harness_engine.tools.connection import OnProgress, Progress
from tiny_harness_engine.tools.hub import ToolHub
from tiny_harness_engine.tools.result import ToolResult, result_block
from tiny_harness_engine.tools.server import Limits
from tiny_harness_engine.tools.tool import Tool

__all__ = ["Limits", "OnProgress", "Progress", "Tool", "ToolHub", "ToolResult", "result_block"]
