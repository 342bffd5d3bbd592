"""Why a model failed, in words that may be shown to people: short, plain, and without the key. Pure."""

import unicodedata
from typing import Final

MAX_REASON_CHARS: Final = 300
MAX_READ_CHARS: Final = 20_000
"""What is looked at of an error's text; a provider may answer an error with a whole page."""
HIDDEN: Final = "***"

GARBAGE: Final = "it sent something that is no answer"
HALF: Final = "its stream ended before the answer was complete"
WORDLESS: Final = "it answered without a word"


def plain_reason(text: str, secret: str | None = None) -> str:
    """Make a provider's words safe to show.

    Args:
        text: What the provider said, of any length.
        secret: Is replaced wherever it stands, before the text is cut: the start of a key is a leak too.
    """
    words = "".join(" " if unicodedata.category(c)[0] == "C" else c for c in text[:MAX_READ_CHARS]).split()
    line = " ".join(words)
    if secret:
        line = line.replace(secret, HIDDEN)
    return line if len(line) <= MAX_REASON_CHARS else f"{line[: MAX_REASON_CHARS - 1]}…"
