"""What `send` and `tasks answer` tell of how a turn ended, and their status for it."""

import sys
from typing import TYPE_CHECKING, Final

from tiny_harness.cli.output import (
    answer_hint,
    answer_json,
    choices_line,
    show,
    show_error,
    show_json,
    state_words,
    task_json,
)

if TYPE_CHECKING:
    from tiny_harness.client import Question, TurnResult

EXIT_REFUSED: Final = 1
EXIT_QUESTION: Final = 3


def show_turn(result: "TurnResult", *, as_json: bool) -> int:
    """Print a turn's reply, and the question that the task waits with.

    Returns:
        0; 1 when a command or a policy refused, or a command failed; 3 when the task waits for an answer.
    """
    is_refused = result.is_refused or (result.command is not None and result.command.outcome != "done")
    question = None if is_refused else result.task.question
    if as_json:
        answer = answer_json(result.command) if result.command else None
        told = task_json(result.task)
        del told["usage"]  # replies do not tell it: it may be that of the turn before
        show_json({**told, "reply": result.reply, "command": answer, "refused": result.is_refused})
    else:
        (show_error if is_refused else show)(result.reply)
        if question is not None:
            _show_question(result, question)
        if sys.stderr.isatty():
            show_error(f"task {result.task.task_id}: {state_words(result.task)}")
    if is_refused:
        return EXIT_REFUSED
    return EXIT_QUESTION if question is not None else 0


def _show_question(result: "TurnResult", question: "Question") -> None:
    if question.words not in ("", result.reply):
        show(question.words)
    if question.choices:
        show(choices_line(question))
    show_error(answer_hint(result.task.task_id, question))
