"""A tool's arguments, from the JSON that a model wrote to what is sent. Pure."""

import json
from typing import Any, Final

from pydantic_core import from_json

from tiny_harness.errors import InvalidArguments
from tiny_harness_engine.tools.schema import Schema
from tiny_harness_engine.tools.words import one_line

MAX_ARGUMENTS_BYTES: Final = 256 * 1024


def read_arguments(tool: str, text: str, schema: Schema) -> dict[str, Any]:
    """Parse arguments and hold them against the tool's schema. No text at all stands for no arguments.

    Raises:
        InvalidArguments: They are too large, not JSON, no object, or break the schema.
    """
    if len(text) > MAX_ARGUMENTS_BYTES or len(text.encode(errors="replace")) > MAX_ARGUMENTS_BYTES:
        raise InvalidArguments(tool, "$", f"they have more than {MAX_ARGUMENTS_BYTES} bytes")
    arguments = _parsed(tool, text) if text.strip() else {}
    if not isinstance(arguments, dict):
        raise InvalidArguments(tool, "$", "they must be a JSON object")
    fault = schema.fault(arguments)
    if fault is not None:
        raise InvalidArguments(tool, fault.path, fault.reason)
    return arguments


def _parsed(tool: str, text: str) -> Any:
    try:
        document = from_json(text, allow_inf_nan=False)
        json.dumps(document).encode()  # whatever cannot be written again cannot be sent
    except (ValueError, RecursionError) as error:
        raise InvalidArguments(tool, "$", f"they are not valid JSON: {one_line(str(error), 200)}") from None
    return document
