"""A tool's arguments against its schema, which a stranger wrote."""

import json
import time
from contextlib import suppress
from typing import Any

import pytest

from tiny_harness.errors import InvalidArguments
from tiny_harness_engine.tools.arguments import MAX_ARGUMENTS_BYTES, read_arguments
from tiny_harness_engine.tools.schema import MAX_SCHEMA_BYTES, Schema

ORDER: dict[str, Any] = {
    "type": "object",
    "properties": {
        "id": {"type": "string", "pattern": "^[0-9]+$"},
        "lines": {"type": "array", "items": {"$ref": "#/$defs/line"}},
    },
    "required": ["id"],
    "additionalProperties": False,
    "$defs": {"line": {"type": "object", "properties": {"count": {"type": "integer", "minimum": 1}}}},
}


def refused(text: str, schema: dict[str, Any] = ORDER) -> InvalidArguments:
    with pytest.raises(InvalidArguments) as caught:
        read_arguments("shop/main.order", text, Schema(schema))
    assert caught.value.tool == "shop/main.order"
    return caught.value


def test_good_arguments_are_read() -> None:
    text = '{"id": "7", "lines": [{"count": 2}]}'
    assert read_arguments("t", text, Schema(ORDER)) == {"id": "7", "lines": [{"count": 2}]}


@pytest.mark.parametrize("text", ["", " \n"])
def test_no_text_at_all_is_no_arguments(text: str) -> None:
    assert read_arguments("t", text, Schema({"type": "object"})) == {}
    assert refused(text).reason == "'id' is a required property"


@pytest.mark.parametrize(
    ("text", "path", "reason"),
    [
        ('{"id": 7}', "$.id", "7 is not of type 'string'"),
        ('{"id": "x"}', "$.id", "'x' does not match '^[0-9]+$'"),
        ('{"id": "7", "lines": [{"count": 1}, {"count": 0}]}', "$.lines[1].count", "0 is less than the minimum of 1"),
        (
            '{"id": "7", "colour": 1}',
            "$",
            "Additional properties are not allowed ('colour' was unexpected)",
        ),
    ],
)
def test_a_fault_names_its_place(text: str, path: str, reason: str) -> None:
    error = refused(text)
    assert (error.path, error.reason) == (path, reason)


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "nonsense",
        '{"id": "7"} {}',
        "[]",
        '"x"',
        "null",
        '{"id": NaN}',
        '{"id": Infinity}',
        '{"id": "\\ud800"}',
        '{"id": ' + "9" * 5000 + "}",
        '{"a":' * 100_000,
        "[" * 100_000 + "]" * 100_000,
    ],
)
def test_what_is_no_json_object_is_refused(text: str) -> None:
    assert refused(text).path == "$"


def test_arguments_are_bounded() -> None:
    assert "more than" in refused(json.dumps({"id": "7" * MAX_ARGUMENTS_BYTES})).reason
    assert "more than" in refused('{"id": "' + "é" * (MAX_ARGUMENTS_BYTES // 2) + '"}').reason


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "no type"},
        {"properties": []},
        {"type": "object", "description": "x" * MAX_SCHEMA_BYTES},
        {"type": "object", "minimum": "x"},
    ],
)
def test_a_schema_that_is_none_is_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="schema"):
        Schema(schema)


def test_a_reference_into_nothing_refuses_and_nothing_is_fetched() -> None:
    schema = {"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:9/schema.json"}}}
    assert "cannot be applied" in refused('{"a": 1}', schema).reason


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"properties": {"a": {"pattern": "^(a+)+$"}}}, json.dumps({"a": "a" * 5_000 + "!"})),
        ({"patternProperties": {"^(a+)+$": {}}, "additionalProperties": False}, json.dumps({"a" * 5_000 + "!": 1})),
        (
            {"properties": {"default": {"patternProperties": {"^(a+)+$": {}}}}},
            json.dumps({"default": {"a" * 5_000 + "!": 1}}),
        ),
        ({"properties": {"a": {"uniqueItems": True}}}, json.dumps({"a": [*range(20_000), *map(str, range(20_000))]})),
        ({"$ref": "#"}, "{}"),
        ({"allOf": [{"$ref": "#"}, {"$ref": "#"}]}, "{}"),
        ({"$defs": {"x": {"$ref": "#/$defs/x"}}, "$ref": "#/$defs/x", "unevaluatedProperties": False}, "{}"),
        (
            {
                "$defs": {
                    "n0": {"type": "string"},
                    **{f"n{n}": {"anyOf": [{"$ref": f"#/$defs/n{n - 1}"}] * 2} for n in range(1, 30)},
                },
                "properties": {"a": {"$ref": "#/$defs/n29"}},
            },
            '{"a": 1}',
        ),
    ],
)
def test_a_hostile_schema_takes_bounded_time(schema: dict[str, Any], text: str) -> None:
    began = time.process_time()
    with suppress(InvalidArguments):
        read_arguments("t", text, Schema(schema))
    assert time.process_time() - began < 20  # each of these takes for ever where it is checked naively


def test_a_pattern_that_only_the_server_understands_is_left_to_it() -> None:
    schema = {"properties": {"a": {"pattern": "^(?!x)"}}}
    assert read_arguments("t", '{"a": "x"}', Schema(schema)) == {"a": "x"}


def test_an_old_draft_is_read_as_what_it_is() -> None:
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "properties": {"a": {"items": [{"type": "string"}]}},
    }
    assert refused('{"a": [1]}', schema).path == "$.a[0]"
    assert read_arguments("t", '{"a": ["x", 1]}', Schema(schema)) == {"a": ["x", 1]}
