"""Checks whether a service, in any language, speaks the remote contract."""

from tiny_harness.hooks.conformance.check import RULES, Unreachable, check
from tiny_harness.hooks.conformance.finding import Finding

__all__ = ["RULES", "Finding", "Unreachable", "check"]
