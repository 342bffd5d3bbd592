"""The intrinsic tools as models are offered them: names, words and schemas. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic import BaseModel

from tiny_harness_engine.core import acts
from tiny_harness_engine.models.port import ToolSpec


@dataclass(frozen=True, slots=True)
class Intrinsic:
    """One of them."""

    act: type[BaseModel]
    """What it does to the task; its fields are the tool's arguments."""
    description: str
    """For the model."""
    is_read_only: bool = False
    """Whether it changes nothing, so that it may run beside others."""
    needs_skills: bool = False
    """Whether it is of no use where there are no skills."""
    needs_supervision: bool = False
    """Whether it is for the worker of a supervised task only."""


NO_AGENTS: Final[Mapping[str, str]] = {}

INTRINSICS: Final[Mapping[str, Intrinsic]] = {
    "create_plan": Intrinsic(
        acts.CreatePlan,
        "Make a plan for this task, or replace it. Use it for work of several steps. A step that keeps its id stays"
        " done if it was. The participants can read the plan.",
    ),
    "complete_step": Intrinsic(
        acts.CompleteStep,
        "Mark a step of the plan as done, with what came of it. The next step that waits for nothing becomes active.",
    ),
    "spawn_subtask": Intrinsic(
        acts.SpawnSubtask,
        "Give a separable piece of the work to an agent. It works on its own and sees nothing of this conversation. You"
        " are told when it ends; this task cannot be completed before.",
    ),
    "ask_participant": Intrinsic(
        acts.AskParticipant,
        "Ask a person something that you cannot find out or must not decide. The task waits for the answer: ask only"
        " what you need, and all of it at once.",
    ),
    "create_task_for_participant": Intrinsic(
        acts.CreateTaskForParticipant,
        "Give a piece of the work to a person or agent that takes part in this task. You are told when it ends; this"
        " task cannot be completed before.",
    ),
    "set_participant_role": Intrinsic(
        acts.SetParticipantRole,
        "Propose that somebody takes part in this task, or in another role. The reporter or an admin may have to"
        " approve it.",
    ),
    "task_update": Intrinsic(
        acts.TaskUpdate,
        "Say how this task stands. It is open until you do: a message alone does not end it.",
        needs_supervision=True,
    ),
    "load_skill": Intrinsic(
        acts.LoadSkill,
        "Read the instructions of a skill from the list of skills. Do so before you start work that a skill describes.",
        is_read_only=True,
        needs_skills=True,
    ),
    "read_skill_file": Intrinsic(
        acts.ReadSkillFile,
        "Read a file that a skill's instructions mention.",
        is_read_only=True,
        needs_skills=True,
    ),
}
"""By name, in the order in which models are offered them."""


def is_act(name: str) -> bool:
    """Whether a tool is an intrinsic that changes the task: the workflow applies it. The others only read."""
    return name in INTRINSICS and not INTRINSICS[name].is_read_only


def intrinsic_specs(
    *, has_skills: bool, agents: Mapping[str, str] = NO_AGENTS, is_worker: bool = False
) -> tuple[ToolSpec, ...]:
    """List the tools to offer, always in the same order: providers cache what does not change.

    Args:
        has_skills: Whether there are any.
        agents: What the configuration says of each remote agent, by name.
        is_worker: Whether the agent is the worker of a supervised task.
    """
    offered = [
        (name, tool)
        for name, tool in INTRINSICS.items()
        if (has_skills or not tool.needs_skills) and (is_worker or not tool.needs_supervision)
    ]
    specs = {name: ToolSpec(name, tool.description, parameters(tool.act)) for name, tool in offered}
    specs["spawn_subtask"] = _for_agents(specs["spawn_subtask"], agents)
    return tuple(specs.values())


def _for_agents(spec: ToolSpec, agents: Mapping[str, str]) -> ToolSpec:
    """Name the remote agents that there are; without any there is nothing to choose."""
    if agents:
        told = "\n".join(f"- {name}: {words}".rstrip(": ") for name, words in agents.items())
        return ToolSpec(spec.name, f"{spec.description} Agents elsewhere:\n{told}", spec.parameters)
    properties = {name: value for name, value in spec.parameters["properties"].items() if name != "agent"}
    return ToolSpec(spec.name, spec.description, {**spec.parameters, "properties": properties})


def parameters(model: type[BaseModel]) -> dict[str, Any]:
    """Make the schema of an act's arguments: an object, without references and titles, which not every server reads."""
    schema = model.model_json_schema()
    plain = _plain(schema, schema.get("$defs", {}))
    return {key: value for key, value in plain.items() if key not in ("$defs", "description")}


def _plain(schema: Any, defs: Mapping[str, Any]) -> Any:
    """Put definitions in the place of their references, and leave out the titles that pydantic makes of names."""
    if isinstance(schema, list):
        return [_plain(each, defs) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _plain(defs[schema["$ref"].rpartition("/")[2]], defs)
    return {
        key: {name: _plain(each, defs) for name, each in value.items()} if key == "properties" else _plain(value, defs)
        for key, value in schema.items()
        if key != "title"
    }
