"""All that a model may ask for: intrinsics, skills, and the tools of MCP servers (DESIGN: agent core).

Intrinsics that change the task become acts, which the workflow applies; everything else is carried out in an activity.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from tiny_harness.errors import HarnessError, ToolFailed, UnknownTool
from tiny_harness_engine.core import acts
from tiny_harness_engine.core.steps import CallPlan
from tiny_harness_engine.intrinsics import INTRINSICS, Misuse, intrinsic_specs, read_call
from tiny_harness_engine.models import ToolCall, ToolSpec
from tiny_harness_engine.records import CallRecord, CallResult
from tiny_harness_engine.skills import SkillLibrary

MAX_CALLS: Final = 128
"""Calls that one step may ask for."""
MAX_NAME_CHARS: Final = 200


class OfferedTool(Protocol):
    """A tool of an MCP server, as far as it matters here: see `tools.Tool`."""

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def parameters(self) -> Mapping[str, Any]: ...
    @property
    def is_idempotent(self) -> bool: ...
    @property
    def is_read_only(self) -> bool: ...
    @property
    def schema_hash(self) -> str: ...


class Hub(Protocol):
    """Where the tools of MCP servers are. Its own types are not imported: MCP is, when somebody has a server."""

    def tools(self) -> Sequence[OfferedTool]:
        """List what can be called now."""
        ...

    async def settle(self) -> None:
        """Wait until the servers have been listed, as far as they can be within a bound."""
        ...

    async def call(self, name: str, arguments: str, schema_hash: str | None) -> CallResult:
        """Call a tool.

        Raises:
            HarnessError: It has no answer; a `ToolFailed` says whether it may have run.
        """
        ...

    def health(self) -> list[dict[str, Any]]:
        """Say how the servers are."""
        ...


class NoHub:
    """No tools but our own."""

    def tools(self) -> Sequence[OfferedTool]:
        """List none."""
        return ()

    async def settle(self) -> None:
        """There is nothing to wait for."""

    async def call(self, name: str, arguments: str, schema_hash: str | None) -> CallResult:
        """Find no tool."""
        del arguments, schema_hash
        raise UnknownTool(name)

    def health(self) -> list[dict[str, Any]]:
        """There is nothing that could be ill."""
        return []


class Toolbox:
    """What models are offered, and how it is called."""

    def __init__(self, hub: Hub, skills: SkillLibrary, agents: Mapping[str, str]) -> None:
        """Fill it.

        Args:
            hub: Where the tools of MCP servers are.
            skills: What the model can learn.
            agents: What the configuration says of each remote agent, by name.
        """
        self._hub = hub
        self._agents = agents
        self.skills: Final = skills

    async def settle(self) -> None:
        """Wait for the first listing of the servers: before it, `specs` are not whole."""
        await self._hub.settle()

    def health(self) -> list[dict[str, Any]]:
        """Say how the tool servers are."""
        return self._hub.health()

    def specs(self, *, is_worker: bool = False) -> tuple[ToolSpec, ...]:
        """List what a model may ask for, intrinsics first: those never change.

        Args:
            is_worker: Whether the agent is the worker of a supervised task.
        """
        tools = [ToolSpec(tool.name, tool.description, tool.parameters) for tool in self._hub.tools()]
        has_skills = len(self.skills) > 0
        return (*intrinsic_specs(has_skills=has_skills, agents=self._agents, is_worker=is_worker), *tools)

    async def record(self, calls: Sequence[ToolCall]) -> tuple[CallRecord, ...]:
        """Note calls as they were asked for, with the schema that they were decided upon."""
        for call in calls:
            await self.find(call.name)
        hashes = {tool.name: tool.schema_hash for tool in self._hub.tools()}
        return tuple(
            CallRecord(
                call_id=call.call_id, name=call.name, arguments=call.arguments, schema_hash=hashes.get(call.name)
            )
            for call in calls
        )

    def plan(self, calls: Sequence[CallRecord]) -> tuple[CallPlan, ...]:
        """Say how each call of a step is to be carried out."""
        tools = {tool.name: tool for tool in self._hub.tools()}
        return tuple(_plan(place, call, tools.get(call.name)) for place, call in enumerate(calls))

    async def find(self, name: str) -> OfferedTool | None:
        """Find the tool of an MCP server; one that is not known yet may be that of a server that is just starting."""
        found = self._listed(name)
        if found is not None or name in INTRINSICS:
            return found
        await self._hub.settle()
        return self._listed(name)

    def _listed(self, name: str) -> OfferedTool | None:
        return next((tool for tool in self._hub.tools() if tool.name == name), None)

    async def call(self, call: CallRecord, arguments: str) -> CallResult:
        """Call a tool, or read a skill. What went wrong is a result for the model, too.

        Args:
            call: As it was recorded.
            arguments: Instead of the recorded ones, JSON.

        Raises:
            ToolFailed: It may have run, and whether it did is not known.
        """
        if call.name in INTRINSICS:
            act = read_call(call.name, arguments)
            return CallResult(text=act.text, is_error=True) if isinstance(act, Misuse) else await self._read(act)
        try:
            return await self._hub.call(call.name, arguments, call.schema_hash)
        except ToolFailed as error:
            if error.may_have_run:
                raise
            return CallResult(text=str(error), is_error=True)
        except HarnessError as error:
            return CallResult(text=str(error), is_error=True)

    async def _read(self, act: acts.Act) -> CallResult:
        match act:
            case acts.LoadSkill():
                return self.skills.load_skill(act.name)
            case acts.ReadSkillFile():
                return await asyncio.to_thread(self.skills.read_skill_file, act.name, act.path)
            case _:
                return CallResult(text="This cannot be done here.", is_error=True)


def _plan(place: int, call: CallRecord, tool: OfferedTool | None) -> CallPlan:
    plan = CallPlan(call=place, call_id=call.call_id, name=call.name[:MAX_NAME_CHARS])
    if place >= MAX_CALLS:
        return plan.model_copy(update={"error": f"A step may ask for {MAX_CALLS} calls; this one was not made."})
    if call.name in INTRINSICS:
        return _plan_intrinsic(plan, call)
    if tool is None and call.schema_hash is None:
        return plan.model_copy(update={"error": f"There is no tool {call.name[:MAX_NAME_CHARS]!r}."})
    # One that there was when it was asked for has a server that is down, or is not up yet: the call finds out.
    return plan.model_copy(update={"is_parallel": tool is not None and tool.is_read_only})


def _plan_intrinsic(plan: CallPlan, call: CallRecord) -> CallPlan:
    act = read_call(call.name, call.arguments)
    if isinstance(act, Misuse):
        return plan.model_copy(update={"error": act.text})
    if isinstance(act, acts.LoadSkill):
        return plan.model_copy(update={"skill": act.name, "is_parallel": True})
    if isinstance(act, acts.ReadSkillFile):
        return plan.model_copy(update={"is_parallel": True})
    return plan.model_copy(update={"act": act})
