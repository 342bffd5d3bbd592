"""What the agent does on the way to its answer, in a few plain words for both surfaces. Pure."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

from tiny_harness.client import Question
from tiny_harness.ext.plan import Plan, PlanStep
from tiny_harness.ext.stream import ToolUse
from tiny_harness.states import SUB_STATE_LABELS
from tiny_harness.tui.printable import one_line, printable

MAX_STEPS: Final = 3
"""Steps of a plan that are shown at a time."""
MAX_NOTE_CHARS: Final = 500
MARKS: Final = {"done": "✓", "active": "▸", "pending": "·"}
FAILED: Final = "✗"

_BLOCK: Final = re.compile(r"^</?[a-z_]+>$")
"""A line that is only there for models: it delimits what somebody else wrote."""


def used(uses: Sequence[ToolUse]) -> str:
    """Name the tools that were used, each once, such as `used orders.look ×2, orders.refund ✗`."""
    counted = Counter((one_line(use.name).rpartition("/")[2], use.is_error) for use in uses)
    return "used " + ", ".join(_use(name, count, failed=failed) for (name, failed), count in counted.items())


def plan_lines(plan: Plan) -> list[str]:
    """Put a plan into a few lines: how much of it is done, and the steps around the one that is worked on."""
    steps = plan.steps
    done = sum(step.status == "done" for step in steps)
    current = next((place for place, step in enumerate(steps) if step.status != "done"), len(steps))
    first = max(0, min(current - 1, len(steps) - MAX_STEPS))
    return [f"Plan · {done} of {len(steps)} done", *(_step(step) for step in steps[first : first + MAX_STEPS])]


def note_words(text: str) -> str:
    """Put a note for the agent into words for a person: cut short, without blank lines and what only models need."""
    lines = [line for line in printable(text).splitlines() if line.strip() and not _BLOCK.match(line)]
    words = "\n".join(lines)
    return words if len(words) <= MAX_NOTE_CHARS else f"{words[:MAX_NOTE_CHARS]} …"


def asked(question: Question) -> str:
    """Say what kind of question it is, such as `Waiting for your approval`."""
    return SUB_STATE_LABELS.get(question.sub_state) or "Waiting for you"


def chosen(question: Question | None, text: str) -> str | None:
    """Find the choice that a text is, of a question that takes nothing else for an answer."""
    if question is None or question.request_id is None:
        return None
    said = text.strip().casefold()
    return next((choice for choice in question.choices if choice.casefold() == said), None)


def _use(name: str, count: int, *, failed: bool) -> str:
    return name + (f" ×{count}" if count > 1 else "") + (f" {FAILED}" if failed else "")


def _step(step: PlanStep) -> str:
    return f"{MARKS[step.status]} {one_line(step.name)}"
