"""What a conformance run finds: for each rule whether it is kept, and why one thinks so."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

OutcomeWord = Literal["ok", "failed", "skipped"]

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Judgement:
    """How one rule came out."""

    outcome: OutcomeWord
    why: str


@dataclass(frozen=True, slots=True)
class Finding:
    """How one rule came out, with the rule."""

    rule: str
    """A short name that never changes."""
    says: str
    """The rule, as a sentence."""
    outcome: OutcomeWord
    why: str


@dataclass(frozen=True, slots=True)
class Rule(Generic[R]):
    """One rule of the contract, and how to look whether a service keeps it."""

    name: str
    says: str
    judge: Callable[[R], Awaitable[Judgement]]


def ok(why: str) -> Judgement:
    """The rule is kept."""
    return Judgement("ok", why)


def failed(why: str) -> Judgement:
    """The rule is broken."""
    return Judgement("failed", why)


def skipped(why: str) -> Judgement:
    """Nobody can tell."""
    return Judgement("skipped", why)


def all_of(good: str, *faults: str | None) -> Judgement:
    """Judge by what is wrong, if anything."""
    found = [fault for fault in faults if fault]
    return failed("; ".join(found)) if found else ok(good)
