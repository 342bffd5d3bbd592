"""Arguments, schemas and results in the forms that providers take."""

import json

import pytest

from tiny_harness_engine.models import ModelMessage
from tiny_harness_engine.models.calls import UNREADABLE, accepted_schema, as_json, as_object, parsed, result_text


@pytest.mark.parametrize("text", ['{"a": 1}', "{}", ' {"a" : [1] }'])
def test_good_arguments_stay_as_the_model_wrote_them(text: str) -> None:
    assert as_json(text) == text
    assert as_object(text) == parsed(text) == json.loads(text)


@pytest.mark.parametrize("text", ['{"a": ', "[1]", "null", "1", "words", "[" * 100_000])
def test_what_is_no_object_is_wrapped_in_one(text: str) -> None:
    assert parsed(text) is None
    assert as_object(text) == json.loads(as_json(text)) == {UNREADABLE: text}


def test_no_arguments_are_an_empty_object() -> None:
    assert (parsed(""), as_object(""), as_json("")) == ({}, {}, "{}")


def test_a_schema_gets_what_providers_demand_and_loses_what_they_refuse() -> None:
    assert accepted_schema({}) == {"type": "object", "properties": {}}
    schema = {"type": "object", "properties": {"a": {"anyOf": []}}, "required": ["a"]}
    assert accepted_schema(schema | {"oneOf": [], "anyOf": [], "allOf": [], "not": {}, "enum": []}) == schema


def test_a_failed_call_says_so() -> None:
    assert result_text(ModelMessage("tool", "gone")) == "gone"
    assert result_text(ModelMessage("tool", "gone", is_error=True)) == "The call failed.\ngone"
