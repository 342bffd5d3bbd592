"""The conversation as a model is sent it: how large it is, and how it is made to fit (DESIGN: agent core). Pure.

Counts come from the provider where it has counted, and are estimates for what came since.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from tiny_harness_engine.models.port import ModelMessage

MESSAGE_TOKENS: Final = 4
"""What a message costs beside its words."""
_CHARS_PER_TOKEN: Final = 4
_MIN_SHOWN_TOKENS: Final = 50
"""What is left of a text that is cut."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One message of a window."""

    key: str
    """Names it within its task: unique, and the same in every window that it stands in."""
    message: ModelMessage
    measured: int | None = None
    """Of a model's answer: tokens of the call that it answered, input and output, as the provider counted them."""
    tokens: int = field(init=False)
    """Its own tokens, estimated."""

    def __post_init__(self) -> None:
        said = (self.message.text, *(part for call in self.message.tool_calls for part in (call.name, call.arguments)))
        object.__setattr__(self, "tokens", MESSAGE_TOKENS + sum(map(estimate, said)))


@dataclass(frozen=True, slots=True)
class Window:
    """What a model is to be sent beside its instructions, in the order in which it reads."""

    entries: tuple[Entry, ...]
    current: int
    """Place of the first entry of the turn that runs."""
    fixed_tokens: int = 0
    """Estimated tokens of what stands before it and is never left out: the system text and the tools."""

    @property
    def estimated(self) -> int:
        """Tokens of it all, estimated."""
        return self.fixed_tokens + sum(entry.tokens for entry in self.entries)

    @property
    def tokens(self) -> int:
        """Tokens of it all: the provider's last count, and an estimate of what came since.

        A provider that counts nothing, or only a part, does not lead far astray: less than half of the estimate is not
        believed.
        """
        since = 0
        for entry in reversed(self.entries):
            if entry.measured:
                return max(entry.measured + since, self.estimated // 2)
            since += entry.tokens
        return self.estimated

    def as_estimated(self, tokens: float) -> int:
        """Turn tokens as the provider counts them into tokens as we estimate them."""
        return int(tokens * self.estimated / max(self.tokens, 1))

    @property
    def messages(self) -> tuple[ModelMessage, ...]:
        """What to send."""
        return tuple(entry.message for entry in self.entries)

    @property
    def units(self) -> list[list[Entry]]:
        """Groups of what stays or goes together: what a model asked for, and all its results."""
        units: list[list[Entry]] = []
        for entry in self.entries:
            if entry.message.role == "tool" and units:
                units[-1].append(entry)
            else:
                units.append([entry])
        return units

    def without(self, kept: Collection[str]) -> list[Entry]:
        """List what is left out where only these keys are kept."""
        return [entry for entry in self.entries if entry.key not in kept]


def estimate(text: str) -> int:
    """Estimate a text's tokens: four characters of ASCII each, any other character one."""
    plain = len(text.encode("ascii", "ignore"))
    return -(-plain // _CHARS_PER_TOKEN) + len(text) - plain


def fit(window: Window, max_tokens: int) -> Window:
    """Make a window fit, where leaving out older messages was not enough: the longest results of tools are cut.

    People's words, and what the model said and asked for, stay whole: if these are too much, the provider says so.
    """
    excess = window.tokens - max_tokens
    if excess <= 0:
        return window
    results = [entry.tokens for entry in window.entries if entry.message.role == "tool"]
    most = even_share(results, sum(results) - window.as_estimated(excess))
    return replace(window, entries=tuple(_cut(entry, most) for entry in window.entries))


def even_share(sizes: Sequence[int], available: int) -> int:
    """How much each may have at most, so that all together have no more than what is available."""
    share = 0
    for place, size in enumerate(sorted(sizes)):
        share = available // (len(sizes) - place)
        if size > share:
            break
        available -= size
        share = size
    return max(share, 0)


def shorten(text: str, tokens: int) -> str:
    """Cut a text in its middle, so that it has about this many tokens, and say so there."""
    whole, wanted = estimate(text), max(tokens, _MIN_SHOWN_TOKENS)
    if whole <= wanted:
        return text
    kept = len(text) * wanted // whole
    head = kept * 2 // 3
    return f"{text[:head]}\n[{len(text) - kept} characters are left out here]\n{text[len(text) - kept + head :]}"


def _cut(entry: Entry, tokens: int) -> Entry:
    """Cut a tool's result; what the provider counted was another window."""
    if entry.message.role != "tool" or entry.tokens <= tokens:
        return replace(entry, measured=None)
    return Entry(entry.key, replace(entry.message, text=shorten(entry.message.text, tokens)))
