"""What is worth keeping of a hook's call. Pure: it crosses into workflows and the store."""

from dataclasses import dataclass
from typing import Literal

VerdictKind = Literal["refused", "replaced", "failed", "slow"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Something about one call that is worth keeping."""

    executor: str
    point: str
    kind: VerdictKind
    reason: str = ""
    ms: int = 0
