"""The hook executor service: the SDK's executor server, filled from plugin folders (DESIGN: processes)."""

from tiny_harness_hooks.app import create_app

__all__ = ["create_app"]
