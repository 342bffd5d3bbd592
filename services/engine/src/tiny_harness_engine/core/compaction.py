"""Compaction: what is left out of a window that has grown too large (DESIGN: agent core). Pure.

Three decisions, each the default body of a replaceable hook point: `is_due` (compaction.trigger), `choose_kept`
(compaction.keep), and `summary.summary_request` with the model's answer (compaction.summarise). Nothing is deleted: a
`Compaction` says what windows no longer show, the store still has it all. The system text, with goal, criteria, plan
and loaded skills, is no part of a window and never compacted.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Final

from tiny_harness.contracts import Model
from tiny_harness_engine.core.summary import is_summary, plain_summary, summary_entry
from tiny_harness_engine.core.window import Window, shorten

_READABLE: Final = 0.8
"""The share of a window that is filled to summarise another one."""


@dataclass(frozen=True, slots=True)
class Budget:
    """How large a window may be."""

    window_tokens: int
    """Tokens of everything that is sent."""
    compact_at: float = 0.85
    """The share of them beyond which something is left out."""
    keep: float = 0.4
    """The share of them that is used afterwards."""
    summary_tokens: int = 2_000
    """What a summary may have."""
    worth: float = 0.05
    """The share of them that must be gained: less is not worth a call of the model."""

    def to_summarise(self, window: Window) -> int:
        """Estimated tokens that whoever summarises may be given to read of a window."""
        return window.as_estimated(self.window_tokens * _READABLE)


class Compaction(Model):
    """What was left out of a task's windows, and what stands for it. Each one replaces the one before."""

    number: int
    """From 1."""
    through: str
    """Key of the newest message that is left out: all before it are too, but those that were spared."""
    spared: tuple[str, ...] = ()
    """Keys of older messages that stay."""
    known: str
    """Key of the newest message at that time: what a provider counted up to it was another window."""
    summary: str
    messages: int
    """How many this one left out."""
    tool_calls: int
    """Those among them."""
    tokens_before: int
    tokens_after: int
    """Estimated."""


def is_due(window: Window, budget: Budget) -> bool:
    """Whether something has to be left out before the model is asked."""
    return window.tokens > budget.window_tokens * budget.compact_at


def choose_kept(window: Window, budget: Budget) -> frozenset[str]:
    """Choose the messages that stay: those that must, and of the others the newest, as many as there is room for."""
    room = window.as_estimated(budget.window_tokens * budget.keep - budget.summary_tokens) - window.fixed_tokens
    kept = _must_stay(window)
    room -= sum(entry.tokens for entry in window.entries if entry.key in kept)
    for unit in reversed(window.units):
        room -= sum(entry.tokens for entry in unit if entry.key not in kept)
        if room < 0:
            break
        kept.update(entry.key for entry in unit)
    return mend(window, kept)


def mend(window: Window, kept: Collection[str]) -> frozenset[str]:
    """Make a choice one that may be: calls with all their results, what must stay, and no earlier summary."""
    wanted = _must_stay(window).union(kept)
    chosen = {entry.key for unit in window.units if any(one.key in wanted for one in unit) for entry in unit}
    return frozenset(key for key in chosen if not is_summary(key))


def is_worth_it(window: Window, kept: Collection[str], budget: Budget) -> bool:
    """Whether enough is gained; if not, the window stays as it is, and `window.fit` makes it fit."""
    gained = sum(entry.tokens for entry in window.without(kept) if not is_summary(entry.key))
    return gained > budget.window_tokens * budget.worth


def compact(
    window: Window, kept: Collection[str], summary: str, budget: Budget, before: Compaction | None
) -> Compaction:
    """Record what is left out, and the words that stand for it.

    Args:
        window: As it was, with `before` applied.
        kept: From `choose_kept` or `mend`, worth it.
        summary: A model's words; empty if there are none.
        budget: Bounds them.
        before: The task's last compaction.
    """
    left_out = window.without(kept)
    removed = [entry for entry in left_out if not is_summary(entry.key)]
    words = shorten(summary.strip() or plain_summary(window, kept), budget.summary_tokens)
    number = before.number + 1 if before else 1
    through, spared = _reach(window, kept, before)
    return Compaction(
        number=number,
        through=through,
        spared=spared,
        known=window.entries[-1].key,
        summary=words,
        messages=len(removed),
        tool_calls=sum(len(entry.message.tool_calls) for entry in removed),
        tokens_before=window.tokens,
        tokens_after=window.estimated - sum(entry.tokens for entry in left_out) + summary_entry(number, words).tokens,
    )


def applied(window: Window, compaction: Compaction | None) -> Window:
    """Leave out of a window what was left out before, and put the summary in its place.

    Args:
        window: All that was read of the conversation, with no compaction applied yet. What lies too far back to be
            read is no fault.
        compaction: The task's last one.
    """
    if compaction is None:
        return window
    keys = [entry.key for entry in window.entries]
    end = keys.index(compaction.through) + 1 if compaction.through in keys else 0
    known = keys.index(compaction.known) + 1 if compaction.known in keys else 0
    places = [place for place, key in enumerate(keys) if place >= end or key in compaction.spared]
    entries = (
        replace(window.entries[place], measured=None) if place < known else window.entries[place] for place in places
    )
    current = 1 + sum(place < window.current for place in places)
    return replace(window, entries=(summary_entry(compaction.number, compaction.summary), *entries), current=current)


def _must_stay(window: Window) -> set[str]:
    """What the running turn cannot go on without: what people said in it, and the last that was done."""
    running = window.entries[window.current :]
    last = next((unit for unit in reversed(window.units) if unit[0].message.role == "assistant"), [])
    must = [entry for entry in running if entry.message.role == "user" or entry in last]
    return {entry.key for entry in must}


def _reach(window: Window, kept: Collection[str], before: Compaction | None) -> tuple[str, tuple[str, ...]]:
    """Say how far a compaction reaches, and what it spares on the way.

    Messages that `before` spared stand before its own end, which the window does not show any more.
    """
    old = before.spared if before else ()
    for place, entry in reversed(list(enumerate(window.entries))):
        if entry.key not in kept and entry.key not in old and not is_summary(entry.key):
            return entry.key, tuple(one.key for one in window.entries[:place] if one.key in kept)
    if before is None:
        raise ValueError("nothing is left out")
    return before.through, tuple(key for key in old if key in kept)
