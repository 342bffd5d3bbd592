"""What a person has written and not sent, and what they have sent: drafts, earlier messages, large pastes. Pure."""

from typing import Final

FOLD_CHARS: Final = 20_000
"""A longer paste is a short token in the composer; the message has it whole."""
MAX_SENT: Final = 200


class Pastes:
    """Large pasted texts, by the tokens that stand for them."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._count = 0

    def fold(self, text: str) -> str:
        """Give the token for a large text; a shorter one is its own."""
        if len(text) <= FOLD_CHARS:
            return text
        self._count += 1
        lines = text.count("\n") + 1
        token = f"[paste {self._count}: {len(text):,} characters, {lines:,} line{'' if lines == 1 else 's'}]"
        self._texts[token] = text
        return token

    def unfold(self, written: str) -> str:
        """Put the texts where their tokens are."""
        for token, text in self._texts.items():
            written = written.replace(token, text)
        return written


class Sent:
    """Earlier messages, to be brought back one by one."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._place = 0
        self._draft = ""

    def add(self, text: str) -> None:
        """Remember a message; the next look back starts with it."""
        if self._texts[-1:] != [text]:
            self._texts = [*self._texts, text][-MAX_SENT:]
        self._place = len(self._texts)

    def move(self, by: int, current: str) -> str | None:
        """Step back (-1) or forth (+1) from what is written; `None`: there is nothing there."""
        if not 0 <= self._place + by <= len(self._texts):
            return None
        if self._place == len(self._texts):
            self._draft = current
        self._place += by
        return self._draft if self._place == len(self._texts) else self._texts[self._place]


class Drafts:
    """What was being written to each task when it was left."""

    def __init__(self) -> None:
        self._texts: dict[str | None, str] = {}

    def leave(self, task_id: str | None, text: str) -> None:
        """Keep what is written to a task, or to a new conversation."""
        self._texts[task_id] = text

    def take(self, task_id: str | None) -> str:
        """Take it out again; empty if there is none."""
        return self._texts.pop(task_id, "")

    def put_back(self, task_id: str | None, text: str) -> None:
        """Put a text that could not be sent before what is kept."""
        self._texts[task_id] = "\n".join(part for part in (text, self._texts.get(task_id, "")) if part)
