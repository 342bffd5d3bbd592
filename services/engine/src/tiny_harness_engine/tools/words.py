"""Text that strangers wrote, made fit to be read: no control characters, of bounded length. Pure."""

import re
from typing import Final

_UNSEEN: Final = re.compile(
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # terminal control
    "\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"  # invisible, or it turns text round
    "\U000e0000-\U000e007f"  # letters that a model reads and a person does not see
    "\ud800-\udfff"  # halves of characters, which cannot be encoded
    "]+"
)
_JOINERS: Final = ("\u200c", "\u200d")
"""Of letters and of emoji; beside ASCII they only hide words."""


def readable(text: str) -> str:
    """Take out what cannot be seen. Lines stay, and end with a line feed each."""
    return _UNSEEN.sub(_joiner, re.sub("\r\n?|[\u2028\u2029]", "\n", text))


def _joiner(found: re.Match[str]) -> str:
    around = found.string[max(found.start() - 1, 0) : found.start()] + found.string[found.end() : found.end() + 1]
    is_wanted = found[0] in _JOINERS and len(around) == 2 and not re.search(r"[\x00-\x7f]", around)
    return found[0] if is_wanted else ""


def one_line(text: str, limit: int) -> str:
    """Make a line of it, of so many characters at most."""
    line = " ".join(readable(text[: 4 * limit]).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
