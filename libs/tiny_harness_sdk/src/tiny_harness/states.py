"""The words for a task's state and sub-state, free of any protocol library.

Sits at the bottom of the SDK so that workflows, surfaces and services share one vocabulary (A2A 1.0, TaskState;
R4.3 for the sub-states).
"""

from enum import StrEnum
from typing import Final


class TaskState(StrEnum):
    """An A2A task state; the value is its name on the wire."""

    SUBMITTED = "TASK_STATE_SUBMITTED"
    WORKING = "TASK_STATE_WORKING"
    COMPLETED = "TASK_STATE_COMPLETED"
    FAILED = "TASK_STATE_FAILED"
    CANCELED = "TASK_STATE_CANCELED"
    INPUT_REQUIRED = "TASK_STATE_INPUT_REQUIRED"
    REJECTED = "TASK_STATE_REJECTED"
    AUTH_REQUIRED = "TASK_STATE_AUTH_REQUIRED"

    @property
    def is_terminal(self) -> bool:
        """Whether the task has ended for good."""
        return self in TERMINAL_STATES

    @property
    def is_interrupted(self) -> bool:
        """Whether the task waits for somebody outside the harness."""
        return self in INTERRUPTED_STATES

    @property
    def word(self) -> str:
        """The state as errors and scripts name it, such as `INPUT_REQUIRED`."""
        return self.value.removeprefix("TASK_STATE_")


TERMINAL_STATES: Final = frozenset({TaskState.COMPLETED, TaskState.FAILED, TaskState.CANCELED, TaskState.REJECTED})
INTERRUPTED_STATES: Final = frozenset({TaskState.INPUT_REQUIRED, TaskState.AUTH_REQUIRED})
OPEN_STATES: Final = frozenset(TaskState) - TERMINAL_STATES

AWAITING_NEXT_MESSAGE: Final = "awaiting-next-message"
"""The agent has replied; the conversation is open and it is the participant's turn."""

AWAITING_ANSWER: Final = "awaiting-answer"
"""The agent has asked a question."""

AWAITING_APPROVAL: Final = "awaiting-approval"
"""A tool call waits for a reporter or an admin to allow it."""

AWAITING_BUDGET: Final = "awaiting-budget"
"""The budget is spent; a reporter or an admin may grant another one."""

STATE_LABELS: Final[dict[TaskState, str]] = {
    TaskState.SUBMITTED: "Queued",
    TaskState.WORKING: "Working",
    TaskState.COMPLETED: "Completed",
    TaskState.FAILED: "Failed",
    TaskState.CANCELED: "Canceled",
    TaskState.INPUT_REQUIRED: "Input required",
    TaskState.REJECTED: "Rejected",
    TaskState.AUTH_REQUIRED: "Sign-in required",
}
"""What a person reads for each state, the same on every surface."""

SUB_STATE_LABELS: Final[dict[str, str]] = {
    AWAITING_NEXT_MESSAGE: "Your turn",
    AWAITING_ANSWER: "Waiting for your answer",
    AWAITING_APPROVAL: "Waiting for your approval",
    AWAITING_BUDGET: "Waiting for more budget",
}
"""What a person reads for each known sub-state; an unknown one shows its state's label only."""


def describe(state: TaskState, sub_state: str | None = None) -> str:
    """Put a state and its sub-state into words, such as `Input required · Your turn`."""
    label = STATE_LABELS[state]
    detail = SUB_STATE_LABELS.get(sub_state or "")
    return f"{label} · {detail}" if detail and state is TaskState.INPUT_REQUIRED else label
