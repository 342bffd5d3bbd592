"""Tool calls, their results and tools' schemas in the forms that every provider takes. Pure."""

import json
from collections.abc import Mapping
from typing import Any, Final, cast

from tiny_harness_engine.models.port import ModelMessage

UNREADABLE: Final = "unreadable_arguments"
"""Under this name a model sees again what it wrote when that was no JSON object."""
UNTAKEN: Final = frozenset({"allOf", "anyOf", "enum", "not", "oneOf"})
"""Providers refuse the whole request for one of these at the top of a tool's schema."""


def parsed(arguments: str) -> dict[str, Any] | None:
    """Read the arguments of a call, an object; `None`: they are none. Nothing at all stands for no arguments."""
    try:
        content = json.loads(arguments or "{}")
    except (ValueError, RecursionError):  # garbage may be nested deeper than a parser goes
        return None
    return cast("dict[str, Any]", content) if isinstance(content, dict) else None


def as_object(arguments: str) -> dict[str, Any]:
    """Give a call's arguments as an object: for one broken call a provider would refuse the task for ever."""
    content = parsed(arguments)
    return {UNREADABLE: arguments} if content is None else content


def as_json(arguments: str) -> str:
    """Give a call's arguments as a JSON object's text: as the model wrote it, if it was one."""
    return arguments if arguments and parsed(arguments) is not None else json.dumps(as_object(arguments))


def accepted_schema(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Give a tool's schema with what providers demand, `type` and `properties`, and without what they refuse.

    The call is checked against the whole schema afterwards, so nothing gets through that the tool does not take.
    """
    kept = {key: value for key, value in parameters.items() if key not in UNTAKEN}
    return {"type": "object", "properties": {}} | kept


def result_text(message: ModelMessage) -> str:
    """Give a tool's result for an API that has no other way to say that the call failed."""
    return f"The call failed.\n{message.text}" if message.is_error else message.text
