"""Serve hooks and commands of your own over JSON-RPC and MCP (DESIGN: hooks)."""

from tiny_harness.executors.app import ExecutorApp
from tiny_harness.executors.loading import load_app
from tiny_harness.executors.server import DEFAULT_BIND, Certificate, serving_executors

__all__ = ["DEFAULT_BIND", "Certificate", "ExecutorApp", "load_app", "serving_executors"]
