"""A tool as its server lists it, and the listing as a whole: bounded, checked, and known again by a hash. Pure."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import mcp_types as types

from tiny_harness_engine.tools.schema import Schema, compiled
from tiny_harness_engine.tools.words import one_line, readable

MAX_TOOLS: Final = 500
"""Of one server."""
MAX_NAME_CHARS: Final = 128
MAX_DESCRIPTION_CHARS: Final = 8_000


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that can be called."""

    name: str
    """`<plugin>/<server>.<tool>`."""
    description: str
    """Its server's words."""
    parameters: Mapping[str, Any]
    """JSON Schema of its arguments, an object's."""
    is_idempotent: bool
    """Its server says that calling it again changes nothing more, or that it changes nothing at all."""
    is_read_only: bool
    """Its server says that it changes nothing."""
    schema_hash: str
    """SHA-256 over the schema of its arguments and the two hints: what a call was decided upon."""
    own_name: str
    """As its server calls it."""
    arguments: Schema = field(repr=False, compare=False)
    output: Schema | None = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Listing:
    """The tools of a server, by their full names, in its order."""

    tools: Mapping[str, Tool] = field(default_factory=dict[str, Tool])
    left_out: tuple[str, ...] = ()
    """What is wrong with the others, a line each."""


def read_listing(server: str, listed: Iterable[types.Tool]) -> Listing:
    """Take the tools that can be used. One bad tool does not take the others down.

    Args:
        server: `<plugin>/<server>`.
        listed: As the server lists them.
    """
    tools: dict[str, Tool] = {}
    left_out: list[str] = []
    for one in listed:
        name = f"{server}.{one.name}"
        try:
            if name in tools:
                raise ValueError("is listed twice")
            if len(tools) >= MAX_TOOLS:
                raise ValueError(f"is beyond the first {MAX_TOOLS}")
            tools[name] = _tool(name, one)
        except ValueError as error:
            left_out.append(f"{one_line(one.name, 100)}: {error}")
    return Listing(tools, tuple(left_out[:MAX_TOOLS]))


def _tool(name: str, listed: types.Tool) -> Tool:
    if not listed.name.strip() or len(listed.name) > MAX_NAME_CHARS or not listed.name.isprintable():
        raise ValueError(f"must have a name of 1 to {MAX_NAME_CHARS} printable characters")
    schema = listed.input_schema
    if schema.get("type", "object") != "object":
        raise ValueError("does not take an object")
    hints = listed.annotations or types.ToolAnnotations()
    is_read_only = hints.read_only_hint is True
    is_idempotent = is_read_only or hints.idempotent_hint is True
    return Tool(
        name=name,
        description=readable(listed.description or listed.title or "")[:MAX_DESCRIPTION_CHARS],
        parameters=schema,
        is_idempotent=is_idempotent,
        is_read_only=is_read_only,
        schema_hash=_hash([schema, is_idempotent, is_read_only]),
        own_name=listed.name,
        arguments=compiled(schema),
        output=_output(listed.output_schema),
    )


def _output(schema: dict[str, Any] | None) -> Schema | None:
    """A broken schema of results is no reason to do without the tool: its results are just not checked."""
    try:
        return None if schema is None else compiled(schema)
    except ValueError:
        return None


def _hash(document: Any) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
