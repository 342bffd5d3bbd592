"""What a task's words are: set by envelopes, named by its first words. Pure."""

from typing import Final

from tiny_harness.envelope import TaskPatch
from tiny_harness.ext.task import TaskText

MAX_NAME_CHARS: Final = 60


def first_text(patch: TaskPatch | None, words: str) -> TaskText:
    """Make a new task's words: what its envelope says, and a name that a list can show."""
    text = apply_patch(TaskText(), patch)
    return text if text.name else text.model_copy(update={"name": name_from(text.goal or words)})


def apply_patch(text: TaskText, patch: TaskPatch | None) -> TaskText:
    """Replace the fields that a patch carries."""
    if patch is None:
        return text
    changed = {name: getattr(patch, name) for name in TaskText.model_fields if getattr(patch, name) is not None}
    return text.model_copy(update=changed)


def name_from(words: str) -> str:
    """Shorten words to a name: their first line, cut at a word's end."""
    line = next((" ".join(line.split()) for line in words.splitlines() if line.strip()), "New task")
    if len(line) <= MAX_NAME_CHARS:
        return line
    head = line[: MAX_NAME_CHARS - 1]
    return (head.rsplit(" ", 1)[0] if " " in head else head) + "…"
