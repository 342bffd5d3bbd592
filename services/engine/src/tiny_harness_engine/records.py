"""What a finished model step leaves in the store, under (task, turn, step)."""

from tiny_harness.contracts import Model


class StepRecord(Model):
    """A model's answer. The first one recorded counts; a step that finds one does not ask again."""

    message_id: str
    text: str
    input_tokens: int = 0
    output_tokens: int = 0


def reply_id(task_id: str, turn: int, step: int) -> str:
    """Name a step's message, the same on every attempt: the pieces of a reply carry it before it exists."""
    return f"{task_id}.{turn}.{step}"
