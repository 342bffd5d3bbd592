"""How a call of an executor can end: values, which each transport puts into its own words."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Patched:
    """It went well."""

    patch: Mapping[str, Any] | None
    """The fields that are replaced, as JSON; `None`: none."""
    size: int = 0
    """Bytes of the patch."""


@dataclass(frozen=True, slots=True)
class Aborted:
    """The operation is refused."""

    reason: str


@dataclass(frozen=True, slots=True)
class Failed:
    """An executor raised, hung, or answered what it may not. Nobody outside learns more."""

    correlation_id: str
    """Finds it in this server's log."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """Nothing here is called at that point, or for that command."""


@dataclass(frozen=True, slots=True)
class Invalid:
    """The context is none of that point."""

    field: str
    """Where it is malformed; dotted."""


Answer = Patched | Aborted | Failed | Unknown | Invalid
