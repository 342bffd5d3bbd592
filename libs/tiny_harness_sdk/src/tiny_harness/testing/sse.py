"""Server-sent events, as model providers stream them."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

CHUNK_CHARS: Final = 8


def event(data: Mapping[str, Any]) -> str:
    """Frame an event, named by its type if it has one."""
    name = f"event: {data['type']}\n" if "type" in data else ""
    return f"{name}data: {json.dumps(data)}\n\n"


def pieces(text: str) -> Iterator[str]:
    """Cut a text into deltas."""
    return (text[start : start + CHUNK_CHARS] for start in range(0, len(text), CHUNK_CHARS))
