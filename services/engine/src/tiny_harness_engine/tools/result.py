"""What a tool answered, made fit for a model's window: text only, bounded, and in a block that it cannot close. Pure.

A result is a stranger's text. Nothing in here trusts it.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import mcp_types as types

from tiny_harness_engine.core.blocks import in_block
from tiny_harness_engine.tools.schema import Schema
from tiny_harness_engine.tools.words import one_line, readable

MAX_RESULT_BYTES: Final = 256 * 1024
RESULT_BLOCK: Final = "tool_result"


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The answer of a tool that was asked."""

    text: str
    """For the model: everything it said, without control characters, cut at a bound."""
    is_error: bool = False
    """The tool says that it failed."""
    data: dict[str, Any] | None = None
    """Its structured content, if that is what its schema says and not too large."""


def result_block(result: ToolResult) -> str:
    """Put a result into the delimited block in which a model reads it; it can neither close that nor open another."""
    return in_block(RESULT_BLOCK, result.text)


def read_result(answer: types.CallToolResult, output: Schema | None = None) -> ToolResult:
    """Read an answer: its text, then its structured content unless the text says the same.

    Args:
        answer: As it came.
        output: What its structured content should be.
    """
    parts = [_words(part) for part in answer.content]
    data, notes = answer.structured_content, list[str]()
    fault = _fault(answer, output)
    if fault:
        data, notes = None, [f"[structured content left out: {fault}]"]
    elif data is not None and not any(_says(part, data) for part in answer.content):
        parts.append(_written(data))
    if data is not None and len(_written(data).encode(errors="replace")) > MAX_RESULT_BYTES:
        data = None
    text = _bounded(readable("\n".join(part for part in parts if part)))
    return ToolResult("\n".join((text, *notes) if text else notes), answer.is_error, data)


def _fault(answer: types.CallToolResult, output: Schema | None) -> str:
    """What is wrong with the structured content of an answer, if anything."""
    data = answer.structured_content
    if data is None:
        return "" if output is None or answer.is_error else "there is none, though the tool promises some"
    try:
        _written(data)
    except (ValueError, RecursionError) as error:
        return f"it is not JSON: {one_line(str(error), 200)}"
    fault = output.fault(data) if output is not None and not answer.is_error else None
    return f"it breaks the tool's own schema at {fault.path}: {fault.reason}" if fault else ""


def _written(data: dict[str, Any]) -> str:
    return json.dumps(data, ensure_ascii=False, allow_nan=False)


def _bounded(text: str) -> str:
    encoded = text.encode()
    if len(encoded) <= MAX_RESULT_BYTES:
        return text
    kept = encoded[:MAX_RESULT_BYTES].decode(errors="ignore")
    return f"{kept}\n[cut here: the result has {len(encoded)} bytes, these are the first {MAX_RESULT_BYTES}]"


def _words(part: types.ContentBlock) -> str:
    """The text of a part; of any other than text, what it is."""
    if isinstance(part, types.TextContent):
        return part.text
    return f"[{', '.join(one_line(word, 200) for word in _description(part) if word)}: not shown]"


def _description(part: Any) -> Iterator[str]:
    match part:
        case types.ImageContent() | types.AudioContent():
            yield f"an {part.type}"
            yield part.mime_type
            yield f"{_size(part.data)} bytes"
        case types.ResourceLink():
            yield f"a link to {part.uri}"
            yield part.mime_type or ""
        case types.EmbeddedResource(resource=types.BlobResourceContents() as blob):
            yield f"the file {blob.uri}"
            yield blob.mime_type or ""
            yield f"{_size(blob.blob)} bytes"
        case types.EmbeddedResource(resource=types.TextResourceContents() as text):
            yield f"the text {text.uri}"
            yield text.mime_type or ""
            yield f"{len(text.text)} characters"
        case _:
            yield f"something of the type {getattr(part, 'type', 'unknown')}"


def _size(encoded: str) -> int:
    """Of what stands in Base64."""
    return len(encoded) * 3 // 4 - encoded[-2:].count("=")


def _says(part: types.ContentBlock, data: dict[str, Any]) -> bool:
    """Whether a text says what the structured content says: the same written out, or all that is wrapped in it."""
    if not isinstance(part, types.TextContent):
        return False
    if data == {"result": part.text}:
        return True
    try:
        return part.text.lstrip().startswith("{") and json.loads(part.text) == data
    except (ValueError, RecursionError):
        return False
