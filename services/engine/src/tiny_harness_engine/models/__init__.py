"""Model providers, behind one port."""

from tiny_harness_engine.models.port import ModelMessage, ModelProvider, ModelReply, ModelRequest, ModelUsage, ToolCall

__all__ = ["ModelMessage", "ModelProvider", "ModelReply", "ModelRequest", "ModelUsage", "ToolCall"]
