"""Messages that the harness itself writes to a model: a sub-task's brief, and the news of its end. Pure.

Both are literal: whatever they look like, they are never commands, here or at another harness.
"""

import json
from typing import Any, Final

from tiny_harness.contracts import ChildChanged, TaskSnapshot
from tiny_harness.ext import commands
from tiny_harness_engine.core.acting import brief_id
from tiny_harness_engine.core.blocks import in_block
from tiny_harness_engine.core.lifecycle import note_id

NO_WORDS: Final = "It said nothing."


def brief(child: TaskSnapshot, goal: str) -> str:
    """Write the message that a sub-task starts with."""
    return _message(child, brief_id(child.task_id), in_block("goal", goal))


def ending(parent: TaskSnapshot, change: ChildChanged) -> str:
    """Write the news of a sub-task's end."""
    result = in_block("result", change.words) if change.words.strip() else NO_WORDS
    return _message(parent, note_id(change), f"Sub-task {change.task_id} is {change.state.word}.\n{result}")


def _message(task: TaskSnapshot, message_id: str, text: str) -> str:
    message: dict[str, Any] = {
        "messageId": message_id,
        "contextId": task.context_id,
        "taskId": task.task_id,
        "role": "ROLE_AGENT",
        "parts": [{"text": text}],
        "metadata": {commands.KEY: {"literal": True}},
    }
    return json.dumps(message, ensure_ascii=False)
