"""What the model servers for tests understand, and what they answer: the same for every provider."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True)
class Entry:
    """One thing that a request says: the tools, the system text, a message, a result."""

    role: str
    """`tools`, `system`, `user`, `assistant` or `tool`."""
    text: str
    """What it says; of a message with calls, what it says beside them."""
    is_marked: bool = False
    """Whether it ends a prefix that is to be cached."""

    @property
    def tokens(self) -> int:
        """Count words as tokens: numbers that a test can foretell."""
        return len(self.text.split())


@dataclass(frozen=True)
class Asked:
    """A request that was found in order."""

    model: str
    entries: tuple[Entry, ...]
    wants_usage: bool = True

    @property
    def order(self) -> str:
        """What the user said last."""
        return next((entry.text for entry in reversed(self.entries) if entry.role == "user"), "")

    @property
    def results(self) -> list[str]:
        """What tools said since the model spoke."""
        place = max((at for at, entry in enumerate(self.entries) if entry.role == "assistant"), default=-1)
        return [entry.text for entry in self.entries[place + 1 :] if entry.role == "tool"]

    @property
    def tokens(self) -> int:
        """The size of the input."""
        return sum(entry.tokens for entry in self.entries)


@dataclass(frozen=True)
class Called:
    """A tool call."""

    name: str
    arguments: str
    """JSON, or what is left of it."""


@dataclass(frozen=True)
class Answer:
    """What the model says."""

    text: str = ""
    calls: tuple[Called, ...] = ()
    refusal: str = ""
    is_short: bool = False
    """Whether it reached the bound of its tokens."""
    cached: int = 0
    """Tokens of the input that came from the cache."""
    written: int = 0
    """Tokens of the input that went into it."""

    @property
    def tokens(self) -> int:
        """The size of the output."""
        return len((self.text or self.refusal).split())


def answer(asked: Asked) -> Answer:
    """Do as the user said; say what the tools said, if they spoke last."""
    if asked.results:
        return Answer(f"The tools said: {' | '.join(asked.results)}")
    order, _, rest = asked.order.partition(" ")
    return ANSWERS.get(order, lambda _rest: Answer(f"You said: {asked.order}"))(rest)


def _call(rest: str) -> Answer:
    name, _, arguments = rest.partition(" ")
    return Answer(calls=(Called(name, arguments),))


def _calls(rest: str) -> Answer:
    wanted: list[dict[str, Any]] = json.loads(rest)
    calls = tuple(Called(call["name"], json.dumps(call["arguments"])) for call in wanted)
    return Answer("One moment.", calls)


def _short_call(rest: str) -> Answer:
    name, _, arguments = rest.partition(" ")
    return Answer(calls=(Called(name, arguments[: len(arguments) // 2]),), is_short=True)


ANSWERS: Final[Mapping[str, Callable[[str], Answer]]] = {
    "!refuse": lambda rest: Answer(refusal=rest),
    "!empty": lambda _: Answer(),
    "!short": lambda rest: Answer(rest, is_short=True),
    "!call": _call,
    "!half-call": _call,
    "!calls": _calls,
    "!short-call": _short_call,
}
