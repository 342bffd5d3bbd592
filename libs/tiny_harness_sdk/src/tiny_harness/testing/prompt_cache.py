"""A prompt cache as providers have one: the beginning of a request costs less when it was sent before."""

from dataclasses import dataclass, field, replace
from typing import Final

from tiny_harness.testing.model_orders import Answer, Asked, Entry

LEAST_TOKENS: Final = 1024
"""What is smaller is never cached."""

Prefix = tuple[Entry, ...]


@dataclass
class PromptCache:
    """Remembers beginnings of requests."""

    by_mark: bool
    """Whether only beginnings are kept that end with a mark (Anthropic), or any (OpenAI)."""
    kept: set[Prefix] = field(default_factory=set[Prefix])

    def bill(self, asked: Asked, answer: Answer) -> Answer:
        """Say how much of the input was known and how much is now, and keep it."""
        plain = tuple(replace(entry, is_marked=False) for entry in asked.entries)
        ends = [end for end, entry in enumerate(asked.entries, start=1) if entry.is_marked or not self.by_mark]
        long_ends = [end for end in ends if _tokens(plain[:end]) >= LEAST_TOKENS]
        cached = max((_tokens(plain[:end]) for end in long_ends if plain[:end] in self.kept), default=0)
        known = max((_tokens(plain[:end]) for end in long_ends), default=0)
        self.kept |= {plain[:end] for end in long_ends}
        return replace(answer, cached=cached, written=known - cached)


def _tokens(prefix: Prefix) -> int:
    return sum(entry.tokens for entry in prefix)
