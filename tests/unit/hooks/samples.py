"""Contexts as a harness sends them."""

from typing import Any

TASK: dict[str, Any] = {"task_id": "t-1", "context_id": "c-1", "state": "TASK_STATE_INPUT_REQUIRED"}


def command_context(command: str = "deploy", *, phase: str = "in", **changes: Any) -> dict[str, Any]:
    """Make a `command.invoked` context."""
    return {
        "operation": "command.invoked",
        "phase": phase,
        "task": TASK,
        "sender": {"id": "ann", "kind": "human", "role": "reporter"},
        "correlation_id": "corr-1",
        "command": command,
        "arguments": "staging",
        **changes,
    }


def observed_context(operation: str = "state.changed", **changes: Any) -> dict[str, Any]:
    """Make the context of an observed operation."""
    facts: dict[str, Any] = {"operation": operation, "phase": "post", "task": TASK, "correlation_id": "corr-1"}
    return {**facts, "seq": 3, "event": {"statusUpdate": {}}, **changes}
