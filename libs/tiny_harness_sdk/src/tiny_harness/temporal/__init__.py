"""Temporal: a server of our own, or one by address."""

from tiny_harness.temporal.connect import open_temporal

__all__ = ["open_temporal"]
