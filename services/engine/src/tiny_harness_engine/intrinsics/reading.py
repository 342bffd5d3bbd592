"""Reads what a model calls an intrinsic tool with: an act, or what the model did wrong, in words for it. Pure."""

from dataclasses import dataclass
from typing import Any, Final

from pydantic import ValidationError
from pydantic_core import from_json

from tiny_harness.errors import InvalidPlan
from tiny_harness_engine.core.acts import Act, CreatePlan
from tiny_harness_engine.core.plan import create_plan
from tiny_harness_engine.intrinsics.offered import INTRINSICS

MAX_ARGUMENT_CHARS: Final = 200_000
_SHOWN: Final = 5
"""Faults that are told at once."""


@dataclass(frozen=True, slots=True)
class Misuse:
    """Why a call cannot be carried out: the call's result, for the model to do better."""

    text: str


def read_call(name: str, arguments: str) -> Act | Misuse:
    """Read a call of an intrinsic tool.

    Args:
        name: One of `INTRINSICS`.
        arguments: JSON, as the model wrote it. An argument that is null is one that was left out.
    """
    if len(arguments) > MAX_ARGUMENT_CHARS:
        return Misuse(f"{name} was not carried out: its arguments have more than {MAX_ARGUMENT_CHARS} characters.")
    try:
        given = from_json(arguments or "{}")
    except (ValueError, TypeError) as error:
        return Misuse(f"{name} was not carried out: its arguments are not valid JSON: {error}")
    if not isinstance(given, dict):
        return Misuse(f"{name} was not carried out: its arguments must be a JSON object.")
    try:
        act = INTRINSICS[name].act.model_validate(_without_nulls(given))
    except ValidationError as error:
        return Misuse(f"{name} was not carried out. {_faults(error)}")
    return _checked(act)


def _checked(act: Any) -> Act | Misuse:
    """Tell the model of a plan that is none while it still has the call before it."""
    if isinstance(act, CreatePlan):
        try:
            create_plan(act.steps)
        except InvalidPlan as error:
            return Misuse(f"create_plan was not carried out: {error}.")
    return act


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(each) for key, each in value.items() if each is not None}
    return [_without_nulls(each) for each in value] if isinstance(value, list) else value


def _faults(error: ValidationError) -> str:
    """List what is wrong, each with its place; never what was given: it may be long."""
    faults = error.errors(include_url=False, include_input=False, include_context=False)
    lines = [f"- `{'.'.join(str(part) for part in fault['loc'])[:200]}`: {fault['msg']}" for fault in faults[:_SHOWN]]
    more = [f"- and {len(faults) - _SHOWN} more faults"] if len(faults) > _SHOWN else []
    return "\n".join(["Its arguments are wrong:", *lines, *more])
