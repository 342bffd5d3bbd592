"""The published schemas and page of the intrinsic tools are those of the code.

`python tests/contract/test_intrinsic_schemas.py` writes the schemas anew.
"""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tiny_harness_engine.intrinsics import INTRINSICS, parameters
from tiny_harness_engine.models.port import ToolSpec

DOCS = Path(__file__).parents[2] / "docs" / "tools"
SPECS = {name: ToolSpec(name, tool.description, parameters(tool.act)) for name, tool in INTRINSICS.items()}


def schema(spec: ToolSpec) -> dict[str, Any]:
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": spec.name}
    return {**head, "description": spec.description, **spec.parameters}


def written(spec: ToolSpec) -> str:
    return json.dumps(schema(spec), indent=2) + "\n"


@pytest.mark.parametrize("name", SPECS)
def test_the_published_schema_is_what_models_are_offered(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(schema(SPECS[name]))
    assert (DOCS / f"{name}.json").read_text() == written(SPECS[name])


def test_there_is_no_schema_of_a_tool_that_is_gone() -> None:
    assert {path.stem for path in DOCS.glob("*.json")} == set(INTRINSICS)


@pytest.mark.parametrize("name", SPECS)
def test_the_page_names_every_tool_and_argument(name: str) -> None:
    page = (DOCS / "README.md").read_text()
    row = next(line for line in page.splitlines() if line.startswith(f"| [`{name}`]({name}.json)"))
    for argument in SPECS[name].parameters["properties"]:
        assert f"`{argument}`" in row, argument


if __name__ == "__main__":
    for spec in SPECS.values():
        (DOCS / f"{spec.name}.json").write_text(written(spec))
