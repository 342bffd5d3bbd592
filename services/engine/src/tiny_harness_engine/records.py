"""What activities leave in the store beside events, under (task, turn, step); the first one written counts.

Turn 0 is no turn: its steps are named by the number of an input, 0 is the task itself, and compactions count downwards.
"""

from tiny_harness.contracts import Model
from tiny_harness.hooks.verdict import Verdict

NO_TURN = 0


class CallRecord(Model):
    """A tool that a model asked for, as part of its answer."""

    call_id: str
    name: str
    arguments: str
    """JSON, as the model wrote it."""
    schema_hash: str | None = None
    """Of the tool as the model saw it."""


class CallResult(Model):
    """What came of a tool call, under (turn, step, its place)."""

    text: str
    is_error: bool = False


class StepRecord(Model):
    """A model's answer, under (turn, step). A step that finds one does not ask again."""

    message_id: str
    text: str
    tool_calls: tuple[CallRecord, ...] = ()
    """What it asks for before it goes on."""
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    model: str = ""
    """The model that was asked."""
    calls: int = 1
    """Model calls that it took: none if a policy answered."""
    refused: tuple[str, ...] = ()
    """Ids of messages that a policy refused."""


class GateRecord(Model):
    """What remote hooks said of a message or of the task, under (0, seq of the message; 0 for the task)."""

    refusal: str | None = None
    """Why no model may read it."""
    text: str | None = None
    """The words that stand for the message's own."""
    verdicts: tuple[Verdict, ...] = ()
    """What hooks did, if the task may not start: kept with the commit that ends it."""


class ClaimRecord(Model):
    """A command's body was called, under (0, seq of the command): it is never called again."""

    claim: str
    """Names the attempt that called it."""


def reply_id(task_id: str, turn: int, step: int) -> str:
    """Name a step's message, the same on every attempt: the pieces of a reply carry it before it exists."""
    return f"{task_id}.{turn}.{step}"
