"""The agent's own tools: what models are offered, and how their calls are read."""

import json
from typing import Any

import jsonschema
import pytest
from pydantic import TypeAdapter

from tiny_harness.ext.plan import MAX_OUTPUT_CHARS, MAX_STEPS
from tiny_harness_engine.core.acts import (
    Act,
    AskParticipant,
    CompleteStep,
    CreatePlan,
    CreateTaskForParticipant,
    LoadSkill,
    ReadSkillFile,
    SetParticipantRole,
    SpawnSubtask,
    TaskUpdate,
)
from tiny_harness_engine.core.plan import PlannedStep
from tiny_harness_engine.intrinsics import INTRINSICS, Misuse, intrinsic_specs, parameters, read_call
from tiny_harness_engine.intrinsics.reading import MAX_ARGUMENT_CHARS

GOOD: dict[str, tuple[dict[str, Any], Any]] = {
    "create_plan": (
        {"steps": [{"id": "a", "name": "A"}, {"id": "b", "name": "B", "depends_on": ["a"], "description": "do b"}]},
        CreatePlan(
            steps=(
                PlannedStep(id="a", name="A"),
                PlannedStep(id="b", name="B", depends_on=("a",), description="do b"),
            )
        ),
    ),
    "complete_step": ({"output": "done", "step_id": "a"}, CompleteStep(output="done", step_id="a")),
    "spawn_subtask": (
        {"agent": "weather", "goal": "g", "description": "d", "acceptance_criteria": ["one", "two"]},
        SpawnSubtask(agent="weather", goal="g", description="d", acceptance_criteria=("one", "two")),
    ),
    "ask_participant": (
        {"question": "q?", "choices": ["yes", "no"], "participant": "ann@example.org"},
        AskParticipant(question="q?", choices=("yes", "no"), participant="ann@example.org"),
    ),
    "create_task_for_participant": (
        {"participant": "bob", "goal": "g"},
        CreateTaskForParticipant(participant="bob", goal="g"),
    ),
    "set_participant_role": (
        {"participant": "bob", "role": "watcher"},
        SetParticipantRole(participant="bob", role="watcher"),
    ),
    "task_update": (
        {"status": "blocked", "summary": "How much?"},
        TaskUpdate(status="blocked", summary="How much?"),
    ),
    "load_skill": ({"name": "refunds"}, LoadSkill(name="refunds")),
    "read_skill_file": (
        {"name": "refunds", "path": "references/fees.md"},
        ReadSkillFile(name="refunds", path="references/fees.md"),
    ),
}


def refused(name: str, arguments: Any) -> str:
    """Call a tool wrongly; answer what the model is told."""
    answer = read_call(name, arguments if isinstance(arguments, str) else json.dumps(arguments))
    assert isinstance(answer, Misuse), answer
    assert answer.text.startswith(f"{name} was not carried out")
    assert len(answer.text) < 3_000
    return answer.text


def test_every_tool_has_an_example_here() -> None:
    assert list(GOOD) == list(INTRINSICS)


@pytest.mark.parametrize("name", GOOD)
def test_a_good_call_becomes_an_act(name: str) -> None:
    arguments, act = GOOD[name]
    assert read_call(name, json.dumps(arguments)) == act
    assert act.kind == name


@pytest.mark.parametrize("name", GOOD)
def test_an_act_crosses_a_border_and_comes_back(name: str) -> None:
    adapter: TypeAdapter[Act] = TypeAdapter(Act)
    act = GOOD[name][1]
    assert adapter.validate_json(adapter.dump_json(act)) == act


@pytest.mark.parametrize("name", GOOD)
def test_the_schema_takes_what_the_reader_takes(name: str) -> None:
    schema = parameters(INTRINSICS[name].act)
    validator = jsonschema.Draft202012Validator(schema)
    validator.validate(GOOD[name][0])
    assert not validator.is_valid({**GOOD[name][0], "surprise": 1})
    assert not validator.is_valid({})


@pytest.mark.parametrize("name", GOOD)
def test_every_argument_is_explained_to_the_model(name: str) -> None:
    schema = parameters(INTRINSICS[name].act)
    assert INTRINSICS[name].description
    assert schema["type"] == "object"
    assert schema["additionalProperties"] is False
    assert all(argument["description"] for argument in schema["properties"].values())
    text = json.dumps(schema)
    assert all(word not in text for word in ("$ref", "$defs", '"title"', '"kind"'))


@pytest.mark.parametrize("name", GOOD)
@pytest.mark.parametrize(
    "arguments",
    ["", "{", "[]", "null", '"x"', "{}", '{"a": "\\ud800"}', '{"a": "\ud800"}', "[" * 100_000, "1" * 10_000, "{}{}"],
    ids=lambda text: ascii(text)[:12],
)
def test_garbage_is_told_to_the_model(name: str, arguments: str) -> None:
    refused(name, arguments)


def test_arguments_that_are_too_large_are_refused_unread() -> None:
    assert "characters" in refused("complete_step", {"output": "x" * MAX_ARGUMENT_CHARS})


@pytest.mark.parametrize(
    ("name", "change", "place"),
    [
        ("create_plan", {"steps": []}, "steps"),
        ("create_plan", {"steps": "a, b"}, "steps"),
        ("create_plan", {"steps": [{"name": "A"}]}, "steps.0.id"),
        ("create_plan", {"steps": [{"id": "a", "name": "A", "status": "done"}]}, "steps.0.status"),
        ("create_plan", {"steps": [{"id": str(n), "name": "A"} for n in range(MAX_STEPS + 1)]}, "steps"),
        ("complete_step", {"output": "x" * (MAX_OUTPUT_CHARS + 1)}, "output"),
        ("complete_step", {"output": 7}, "output"),
        ("spawn_subtask", {"goal": "  "}, "goal"),
        ("spawn_subtask", {"agent": "../x"}, "agent"),
        ("spawn_subtask", {"acceptance_criteria": ["x"] * 21}, "acceptance_criteria"),
        ("ask_participant", {"participant": "an n"}, "participant"),
        ("ask_participant", {"choices": [""]}, "choices.0"),
        ("create_task_for_participant", {"participant": None}, "participant"),
        ("set_participant_role", {"role": "admin"}, "role"),
        ("set_participant_role", {"role": None}, "role"),
        ("load_skill", {"name": "../refunds"}, "name"),
        ("read_skill_file", {"path": ""}, "path"),
        ("read_skill_file", {"surprise": "x"}, "surprise"),
    ],
    ids=str,
)
def test_a_wrong_argument_is_named(name: str, change: dict[str, Any], place: str) -> None:
    assert f"`{place}`" in refused(name, {**GOOD[name][0], **change})


def test_the_model_is_not_told_its_own_words_again() -> None:
    assert "secret-words" not in refused("set_participant_role", {"participant": "bob", "role": "secret-words" * 50})


def test_many_faults_are_told_shortly() -> None:
    text = refused("create_plan", {"steps": [{"name": "A"}] * MAX_STEPS})
    assert "more faults" in text


def test_a_plan_with_a_cycle_is_refused_at_once_and_the_cycle_named() -> None:
    steps = [{"id": "a", "name": "A", "depends_on": ["b"]}, {"id": "b", "name": "B", "depends_on": ["a"]}]
    text = refused("create_plan", {"steps": steps})
    assert "a needs b needs a" in text or "b needs a needs b" in text


def test_null_is_as_good_as_left_out_at_any_depth() -> None:
    steps = [{"id": "a", "name": "A", "description": None, "depends_on": None}]
    assert read_call("create_plan", json.dumps({"steps": steps})) == CreatePlan(steps=(PlannedStep(id="a", name="A"),))
    arguments = {"agent": None, "goal": "g", "description": None, "acceptance_criteria": None}
    assert read_call("spawn_subtask", json.dumps(arguments)) == SpawnSubtask(goal="g")


@pytest.mark.parametrize("agent", ["self", ""])
def test_the_agent_self_is_this_harness(agent: str) -> None:
    assert read_call("spawn_subtask", json.dumps({"agent": agent, "goal": "g"})) == SpawnSubtask(goal="g")


def test_the_tools_for_skills_are_offered_where_there_are_skills() -> None:
    without = [spec.name for spec in intrinsic_specs(has_skills=False)]
    assert without == [name for name in INTRINSICS if name not in ("load_skill", "read_skill_file", "task_update")]
    assert [spec.name for spec in intrinsic_specs(has_skills=True, is_worker=True)] == list(INTRINSICS)


def test_an_agent_elsewhere_is_offered_where_there_is_one() -> None:
    offered = [intrinsic_specs(has_skills=False, agents=agents)[2] for agents in ({}, {"clerk": "Knows the files."})]
    assert [spec.name for spec in offered] == ["spawn_subtask"] * 2
    assert ["agent" in spec.parameters["properties"] for spec in offered] == [False, True]
    assert "- clerk: Knows the files." in offered[1].description
