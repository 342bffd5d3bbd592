"""Makes strangers' text safe to show in a terminal. Pure."""

import unicodedata
from typing import Final

_KEPT: Final = frozenset("\n\t")
_DIRECTION_MARKS: Final = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""They make a terminal show characters in another order than they are in."""


def printable(text: str) -> str:
    """Remove control characters, escape sequences' starts among them; line breaks and tabs stay."""
    return "".join(char for char in text if char in _KEPT or not _is_control(char))


def one_line(text: str) -> str:
    """Make text fit for a single line, such as a name."""
    return " ".join(printable(text).split())


def _is_control(char: str) -> bool:
    return unicodedata.category(char) in ("Cc", "Cs") or char in _DIRECTION_MARKS
