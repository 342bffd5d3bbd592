"""JSON Schemas of strangers: what a document breaks, found in bounded time and without the network. Pure.

A schema may be hostile. Patterns are matched by Rust's engine, in linear time; what it cannot read, and keywords whose
check can explode (`patternProperties`, `unevaluated…`), are left to the server, which checks its input itself.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from jsonschema import FormatChecker, SchemaError, ValidationError
from jsonschema.exceptions import best_match
from jsonschema.validators import Draft202012Validator, extend, validator_for
from pydantic_core import SchemaError as PatternError
from pydantic_core import SchemaValidator, core_schema
from referencing import Registry

from tiny_harness_engine.tools.words import one_line

MAX_SCHEMA_BYTES: Final = 64 * 1024
MAX_CHECKS: Final = 50_000
"""Keywords that are looked at for one document: about a second at worst."""
MAX_REASON_CHARS: Final = 300

_UNCHECKED: Final = ("patternProperties", "unevaluatedProperties", "unevaluatedItems")

Keyword = Callable[[Any, Any, Any, Any], Iterator[ValidationError] | None]


@dataclass(frozen=True, slots=True)
class Fault:
    """Where a document breaks its schema, and how."""

    path: str
    """A JSON path, such as `$.lines[0].count`."""
    reason: str


class _TooMuch(Exception):
    """A check takes too long."""


class Schema:
    """A schema that documents can be held against."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        """Compile it.

        Raises:
            ValueError: It is no valid JSON Schema, or too large.
        """
        try:
            size = len(json.dumps(document).encode())
            if size > MAX_SCHEMA_BYTES:
                raise ValueError(f"its schema has {size} bytes, more than {MAX_SCHEMA_BYTES}")
            kind: Any = validator_for(document, default=Draft202012Validator)
            kind.check_schema(document, format_checker=FormatChecker(formats=()))
        except SchemaError as error:
            raise ValueError(f"its schema is invalid: {one_line(error.message, MAX_REASON_CHARS)}") from None
        except RecursionError:
            raise ValueError("its schema is nested too deeply") from None
        self._checks = 0
        checks = {**kind.VALIDATORS, **dict.fromkeys(_UNCHECKED, _unchecked)}
        checks |= {"pattern": _pattern, "uniqueItems": _unique_items}
        checks["additionalProperties"] = _additional(checks["additionalProperties"])
        counting: Any = extend(kind, {word: self._counted(check) for word, check in checks.items()})
        self._validator = counting(document, registry=Registry())

    def fault(self, document: Any) -> Fault | None:
        """Find the fault that says most; `None`: there is none."""
        self._checks = 0
        try:
            error = best_match(self._validator.iter_errors(document))
        except _TooMuch:
            return Fault("$", "it takes too long to check")
        except RecursionError:
            return Fault("$", "it is nested too deeply")
        except Exception as unforeseen:  # noqa: BLE001 - a stranger's schema: a reference into nothing, for one
            return Fault("$", f"its schema cannot be applied: {one_line(str(unforeseen), MAX_REASON_CHARS)}")
        if error is None:
            return None
        return Fault(one_line(error.json_path, MAX_REASON_CHARS), one_line(error.message, MAX_REASON_CHARS))

    def _counted(self, check: Keyword) -> Keyword:
        def counted(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
            self._checks += 1
            if self._checks > MAX_CHECKS:
                raise _TooMuch
            yield from check(validator, value, instance, schema) or ()

        return counted


def _unchecked(_validator: Any, _value: Any, _instance: Any, _schema: Any) -> None:
    """Leave it to the server."""


def _additional(check: Keyword) -> Keyword:
    def additional(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError] | None:
        return None if "patternProperties" in schema else check(validator, value, instance, schema)

    return additional


@lru_cache(maxsize=1_000)
def _compiled(text: str) -> Schema:
    return Schema(json.loads(text))


def compiled(document: Mapping[str, Any]) -> Schema:
    """Compile a schema, or take one that was compiled before: it costs milliseconds, and servers list again and again.

    Raises:
        ValueError: It is no valid JSON Schema, or too large.
    """
    try:
        return _compiled(json.dumps(document, sort_keys=True))
    except RecursionError:
        raise ValueError("its schema is nested too deeply") from None


@lru_cache(maxsize=1_000)
def _matcher(pattern: str) -> SchemaValidator | None:
    """Compile a pattern; `None`: Rust's engine cannot."""
    try:
        return SchemaValidator(core_schema.str_schema(pattern=pattern, strict=True))
    except PatternError:
        return None


def _pattern(_validator: Any, pattern: Any, instance: Any, _schema: Any) -> Iterator[ValidationError]:
    matcher = _matcher(pattern) if isinstance(instance, str) else None
    if matcher is not None and not matcher.isinstance_python(instance):
        yield ValidationError(f"{instance!r:.100} does not match {pattern!r:.100}")


def _unique_items(_validator: Any, wanted: Any, instance: Any, _schema: Any) -> Iterator[ValidationError]:
    if (
        wanted
        and isinstance(instance, list)
        and len({json.dumps(one, sort_keys=True) for one in instance}) < len(instance)
    ):
        yield ValidationError("has an item twice")
