"""How commands print: text made safe for a terminal, tables, JSON."""

import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from tiny_harness.client import CommandAnswer, Question, TaskView


_UNSAFE_IN_JSON: Final = re.compile("[\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""What JSON allows unescaped and a terminal obeys, or an encoder refuses."""


def show(text: str = "") -> None:
    """Print text, without the control characters that a stranger may have put in."""
    from tiny_harness.tui.printable import printable

    print(printable(text), flush=True)


def show_error(text: str) -> None:
    """Print a line on standard error, as safely: it may hold a server's words."""
    from tiny_harness.tui.printable import printable

    print(printable(text), file=sys.stderr, flush=True)


def show_json(data: Any) -> None:
    """Print one JSON document."""
    import json

    text = json.dumps(data, ensure_ascii=False, indent=2, default=str)
    print(_UNSAFE_IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text), flush=True)


def show_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows in columns, each on one line."""
    from tiny_harness.tui.printable import one_line

    rows = [[one_line(cell) for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]
    for row in [head, *rows]:
        show("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def task_json(task: "TaskView") -> dict[str, Any]:
    """Give a task as scripts read it."""
    return {
        "task_id": task.task_id,
        "context_id": task.context_id,
        "name": task.name,
        "state": task.state.word,
        "sub_state": task.sub_state,
        "updated_at": task.updated_at,
        "model": task.model,
        "effort": task.effort,
        "supervision": task.supervision.model_dump(exclude={"instructions"}) if task.supervision else None,
        "question": question_json(task.question) if task.question else None,
        "plan": task.plan.model_dump(exclude_none=True)["steps"] if task.plan else None,
        "usage": task.usage.shown() if task.usage else None,
        "participants": [person.model_dump(exclude_none=True) for person in task.participants],
        "parent_tasks": list(task.parent_tasks),
        "sub_tasks": [
            {"task_id": child.task_id, "state": child.state.removeprefix("TASK_STATE_"), "sub_state": child.sub_state}
            for child in task.sub_tasks
        ],
        "messages": [
            {
                "id": message.message_id,
                "role": message.role,
                "text": message.text,
                "command": answer_json(message.command) if message.command else None,
            }
            for message in task.messages
        ],
    }


def answer_json(answer: "CommandAnswer") -> dict[str, Any]:
    """Give what became of a command as scripts read it."""
    return {"name": answer.name, "outcome": answer.outcome, "data": answer.data}


def question_json(question: "Question") -> dict[str, Any]:
    """Give an open question as scripts read it."""
    return {
        "sub_state": question.sub_state,
        "request_id": question.request_id,
        "choices": list(question.choices),
        "words": question.words,
    }


def choices_line(question: "Question") -> str:
    """Name what may be answered, on one line; empty if anything may be."""
    from tiny_harness.tui.printable import one_line

    return f"choices: {', '.join(one_line(choice) for choice in question.choices)}" if question.choices else ""


def answer_hint(task_id: str, question: "Question") -> str:
    """Say how a script answers a question."""
    from tiny_harness.tui.printable import one_line

    if question.request_id is None:
        return f"answer with: tiny-harness send --task {task_id} TEXT"
    words = f"{task_id} {question.request_id} {'|'.join(question.choices)}"
    return f"answer with: tiny-harness tasks answer {one_line(words)}"


def state_words(task: "TaskView") -> str:
    """Put a task's state into words that scripts can match, such as `INPUT_REQUIRED, awaiting-next-message`."""
    words = f"{task.state.word}, {task.sub_state}" if task.sub_state else task.state.word
    return ", ".join((words, *supervision_marks(task)))


def supervision_marks(task: "TaskView") -> tuple[str, ...]:
    """List what is worth a look on a supervised task, such as `stalled`."""
    from tiny_harness.ext.supervision import marks

    return marks(task.supervision) if task.supervision else ()
