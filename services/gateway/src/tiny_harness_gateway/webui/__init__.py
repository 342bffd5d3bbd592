"""The Web UI: a page that is an A2A client like any other, and the routes that serve it."""

from tiny_harness_gateway.webui.pages import PAGE_PATH, Pages

__all__ = ["PAGE_PATH", "Pages"]
