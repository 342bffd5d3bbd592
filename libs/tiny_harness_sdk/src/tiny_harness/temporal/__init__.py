"""Temporal: a server of our own, or one by address."""

from tiny_harness.temporal.connect import connect_temporal, open_temporal

__all__ = ["connect_temporal", "open_temporal"]
