"""What an engine says that it is made of."""

import hashlib
import json
from typing import Any

import pytest

from tiny_harness._version import __version__
from tiny_harness.commands import CommandSpec
from tiny_harness.ext.commands import CommandOffer, CommandsParams
from tiny_harness.plugins import Component, PluginReport
from tiny_harness_engine.catalogue import catalogue

INPUTS: dict[str, Any] = {
    "plugins": [
        PluginReport(
            plugin="deploys",
            path="/home/ann/deploys",
            version="1.2",
            digest="abc",
            state="loaded",
            components=(Component(kind="command", name="deploy", state="loaded"),),
        ),
        PluginReport(plugin="broken", state="rejected", reason="plugin.json: is no JSON"),
    ],
    "commands": [CommandSpec(name="deploy", description="Déploie", argument_hint="<env>", act="control the task")],
    "models": ["big", "small"],
    "default_model": "small",
}


def test_it_tells_build_plugins_commands_and_models() -> None:
    digest, body = catalogue(**INPUTS)
    told = json.loads(body)
    assert digest == hashlib.sha256(body.encode()).hexdigest()
    assert (told["build"], told["models"], told["default_model"]) == (__version__, ["big", "small"], "small")
    assert [(one["name"], one["version"], one["digest"]) for one in told["plugins"]] == [
        ("deploys", "1.2", "abc"),
        ("broken", None, ""),
    ]
    assert told["plugins"][0]["report"]["components"][0]["name"] == "deploy"
    assert told["plugins"][1]["report"]["reason"] == "plugin.json: is no JSON"


def test_its_commands_are_the_params_of_the_cards_extension() -> None:
    offered = CommandsParams.model_validate_json(catalogue(**INPUTS)[1])
    assert offered.commands == (CommandOffer(name="deploy", description="Déploie", argument_hint="<env>"),)


def test_the_same_engine_has_the_same_digest_wherever_its_plugins_lie() -> None:
    moved = [report.model_copy(update={"path": "/srv/elsewhere"}) for report in INPUTS["plugins"]]
    assert catalogue(**INPUTS) == catalogue(**{**INPUTS, "plugins": moved})


@pytest.mark.parametrize(
    "change",
    [
        {"build": "9.9"},
        {"plugins": []},
        {"plugins": [INPUTS["plugins"][0].model_copy(update={"digest": "def"}), INPUTS["plugins"][1]]},
        {"commands": []},
        {"models": ["small"]},
        {"default_model": "big"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_another_engine_has_another_digest(change: dict[str, Any]) -> None:
    assert catalogue(**{**INPUTS, **change})[0] != catalogue(**INPUTS)[0]
