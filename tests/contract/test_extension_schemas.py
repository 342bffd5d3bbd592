"""The published schemas and pages of our extensions are those of the code.

`python tests/contract/test_extension_schemas.py` writes the schemas anew.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from tiny_harness.ext import EXTENSION_BASE, commands, status, stream, supervision, task
from tiny_harness.settings import Settings
from tiny_harness_gateway.card import build_card

DOCS = Path(__file__).parents[2] / "docs" / "a2a" / "ext"

EXTENSIONS: dict[str, tuple[str, str, type[BaseModel]]] = {
    task.NAME: (task.URI, task.KEY, task.TaskData),
    status.NAME: (status.URI, status.KEY, status.StatusData),
    commands.NAME: (commands.URI, commands.KEY, commands.CommandsData),
    stream.NAME: (stream.URI, stream.KEY, stream.StreamData),
    supervision.NAME: (supervision.URI, supervision.KEY, supervision.SupervisionData),
}
"""By name: URI, metadata key, and the model of what stands under the key."""

PARAMS: dict[str, type[BaseModel]] = {commands.NAME: commands.CommandsParams}
"""Models of the params that an extension has on the card."""


MODELS: dict[str, type[BaseModel]] = {
    **{name: model for name, (_, _, model) in EXTENSIONS.items()},
    **{f"{name}.params": model for name, model in PARAMS.items()},
}
"""By the name of the published schema."""


def schema(name: str) -> dict[str, Any]:
    """Make a schema."""
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": f"{EXTENSION_BASE}/{name}.json"}
    return {**head, **MODELS[name].model_json_schema()}


def written(name: str) -> str:
    return json.dumps(schema(name), indent=2) + "\n"


@pytest.mark.parametrize("name", MODELS)
def test_the_published_schema_is_that_of_the_model(name: str) -> None:
    assert (DOCS / f"{name}.json").read_text() == written(name)


def test_the_page_of_the_commands_names_what_is_on_the_card() -> None:
    page = (DOCS / commands.NAME / "v1.md").read_text()
    for word in ("commands.params.json", *(f"`{field}`" for field in commands.CommandOffer.model_fields)):
        assert word in page, word


@pytest.mark.parametrize("name", EXTENSIONS)
def test_the_page_names_uri_key_and_every_field(name: str) -> None:
    uri, key, model = EXTENSIONS[name]
    page = (DOCS / name / "v1.md").read_text()
    for word in (uri, key, f"{name}.json", *(f"`{field}`" for field in model.model_fields)):
        assert word in page, word


def test_a_sub_state_of_a_later_version_is_allowed() -> None:
    sub_state = schema(status.NAME)["properties"]["sub_state"]
    assert sub_state["type"] == "string"
    assert not {"enum", "const", "pattern", "anyOf"} & set(sub_state)
    assert (
        status.StatusData.model_validate({"sub_state": "awaiting-the-tide", "since": 1}).sub_state
        == "awaiting-the-tide"
    )


def test_the_card_advertises_every_extension_and_no_other() -> None:
    card = build_card(Settings())
    advertised = [extension.uri for extension in card.capabilities.extensions]
    assert advertised == [uri for uri, _, _ in EXTENSIONS.values()]
    assert all(uri == f"{EXTENSION_BASE}/{name}/v1" for name, (uri, _, _) in EXTENSIONS.items())


if __name__ == "__main__":
    for published in MODELS:
        (DOCS / f"{published}.json").write_text(written(published))
