"""Hooks: the points at which others may watch, change or refuse what the harness does (DESIGN: hooks)."""

from tiny_harness.hooks.chain import Hooks, Outcome
from tiny_harness.hooks.executor import Executor, call_function
from tiny_harness.hooks.points import OPERATIONS, Operation, parse_point, point_names
from tiny_harness.hooks.verdict import Verdict

__all__ = [
    "OPERATIONS",
    "Executor",
    "Hooks",
    "Operation",
    "Outcome",
    "Verdict",
    "call_function",
    "parse_point",
    "point_names",
]
