"""Tool names and call ids as every provider takes them: letters, digits, `_` and `-`. Pure."""

import re
from collections import Counter
from hashlib import sha256
from typing import Final

from tiny_harness_engine.models.port import ModelRequest

MAX_NAME_CHARS: Final = 64
MAX_ID_CHARS: Final = 40
"""As OpenAI's Chat Completions bounds it."""
HASH_CHARS: Final = 10
UNTAKEN: Final = re.compile(r"[^A-Za-z0-9_-]+")
HASHED: Final = re.compile(rf"_[0-9a-f]{{{HASH_CHARS}}}\Z")


class WireNames:
    """The names of one request's tools in both languages.

    `orders/main.lookup` becomes `orders_main_lookup`. Two that would be called the same, one that is too long and one
    that looks as if it had a hash get one: no tool can take another's calls by its name.
    """

    def __init__(self, request: ModelRequest) -> None:
        told = {call.name for message in request.messages for call in message.tool_calls}
        names = {tool.name for tool in request.tools} | told
        cleaned = Counter(map(_clean, names))
        self._wire = {name: _name(name, is_alone=cleaned[_clean(name)] == 1) for name in names}
        self._ours = {wire: name for name, wire in self._wire.items()}

    def wire(self, name: str) -> str:
        """Give a tool's name for the provider."""
        return self._wire[name]

    def ours(self, wire: str) -> str:
        """Give a tool's name as the harness knows it; one that we did not offer stays as the model said it."""
        return self._ours.get(wire, wire)


def wire_id(call_id: str) -> str:
    """Give a call's id for the provider, which may not be the one that made it: the task may have changed servers."""
    return call_id if _fits(call_id, MAX_ID_CHARS) else f"call_{_hash(call_id)}"


def _name(name: str, *, is_alone: bool) -> str:
    clean = _clean(name)
    if is_alone and _fits(clean, MAX_NAME_CHARS) and not HASHED.search(clean):
        return clean
    return f"{clean[: MAX_NAME_CHARS - HASH_CHARS - 1]}_{_hash(name)}"


def _clean(name: str) -> str:
    return UNTAKEN.sub("_", name)


def _fits(text: str, max_chars: int) -> bool:
    return 0 < len(text) <= max_chars and not UNTAKEN.search(text)


def _hash(text: str) -> str:
    return sha256(text.encode(errors="surrogatepass")).hexdigest()[:HASH_CHARS]
