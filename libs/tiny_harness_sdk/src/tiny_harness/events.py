"""A task's log as values: what the store keeps, the core reads and the gateway streams."""

from dataclasses import dataclass
from typing import Literal

EventKind = Literal["task", "input", "step", "reply", "artifact", "state", "lost"]
"""`task` is a task's first event, `input` records a participant's message, `step` a model step that asked for tools,
`reply` carries the agent's words, `artifact` a task's result, `state`
only a state, `lost` stands for numbers that a failover of the database took back."""


@dataclass(frozen=True, slots=True)
class Event:
    """One durable event: a row of a task's log."""

    task_id: str
    seq: int
    cause: str
    kind: EventKind
    payload: str
    """A finished A2A StreamResponse as JSON; of a `lost` event, an object that no stream carries."""
