"""Model providers, behind one port. Importing this imports no provider's SDK."""

from tiny_harness_engine.models.port import (
    ModelMessage,
    ModelProvider,
    ModelReply,
    ModelRequest,
    ModelUsage,
    ToolCall,
    ToolSpec,
    looks_at_tools,
)
from tiny_harness_engine.models.provider import open_provider

__all__ = [
    "ModelMessage",
    "ModelProvider",
    "ModelReply",
    "ModelRequest",
    "ModelUsage",
    "ToolCall",
    "ToolSpec",
    "looks_at_tools",
    "open_provider",
]
