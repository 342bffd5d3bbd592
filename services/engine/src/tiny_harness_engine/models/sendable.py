"""Text that can be sent at all. Pure."""

import re
from typing import Any, Final

LONE: Final = re.compile("[\\ud800-\\udfff]")
"""Halves of characters: JSON can say them, so a tool's result may hold some, but UTF-8 has none."""


def sendable(value: Any) -> Any:
    """Give a body of plain data with the text in it made sendable."""
    match value:
        case str():
            return LONE.sub("\N{REPLACEMENT CHARACTER}", value)
        case dict():
            return {sendable(name): sendable(inner) for name, inner in value.items()}
        case list():
            return [sendable(inner) for inner in value]
        case _:
            return value
