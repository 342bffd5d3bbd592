"""What hooks say of a call that changes the task, before the workflow applies it (DESIGN: hook points).

Such a call is an intrinsic of the agent's. Each passes `tool.invoked` like any call, and those that make a plan, a
sub-task or a question pass a point of their own, where what they make can be read and replaced as a value.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from tiny_harness.hooks import Hooks, Verdict
from tiny_harness.hooks.contexts import BriefContext, HelpContext, HookContext, PlanContext
from tiny_harness_engine.core import acts
from tiny_harness_engine.core.acts import Act
from tiny_harness_engine.intrinsics import Misuse, read_call

Json = dict[str, Any]


class ActRefused(Exception):
    """A hook, or the check of what a hook made of it, refused an act; in words for the model."""

    def __init__(self, reason: str, verdicts: tuple[Verdict, ...] = ()) -> None:
        super().__init__(reason)
        self.reason = reason
        self.verdicts = verdicts


@dataclass(frozen=True, slots=True)
class _Point:
    """A hook point that an act passes."""

    operation: str
    context: type[HookContext]
    field: str
    """The field of the context that holds the act, and may be replaced."""
    show: Callable[[Act], Json]
    read: Callable[[Json], Act | Misuse]


def _arguments(act: Act) -> Json:
    return act.model_dump(mode="json", exclude={"kind"}, exclude_defaults=True)


def _reader(name: str) -> Callable[[Json], Act | Misuse]:
    return lambda found: read_call(name, json.dumps(found))


def _show_decision(act: Act) -> Json:
    return {"tool": act.kind, "arguments": _arguments(act)}


def _read_decision(found: Json) -> Act | Misuse:
    if found.get("tool") not in ("ask_participant", "create_task_for_participant"):
        return Misuse("help.decided: tool is ask_participant or create_task_for_participant.")
    return read_call(found["tool"], json.dumps(found.get("arguments")))


_HELP: Final = _Point("help.decided", HelpContext, "decision", _show_decision, _read_decision)
_POINTS: Final[dict[type[Any], _Point]] = {
    acts.CreatePlan: _Point("plan.created", PlanContext, "plan", _arguments, _reader("create_plan")),
    acts.SpawnSubtask: _Point("subtask.spawned", BriefContext, "brief", _arguments, _reader("spawn_subtask")),
    acts.AskParticipant: _HELP,
    acts.CreateTaskForParticipant: _HELP,
}


class Vetting:
    """Asks hooks of acts; bound to them."""

    def __init__(self, hooks: Hooks) -> None:
        self._hooks = hooks

    def is_wanted(self, act: Act) -> bool:
        """Whether hooks have a say in such an act."""
        point = _POINTS.get(type(act))
        return bool(self._hooks.at("tool.invoked")) or (point is not None and bool(self._hooks.at(point.operation)))

    async def vet(self, act: Act, call: Json, facts: Callable[[str], Json]) -> tuple[Act, tuple[Verdict, ...]]:
        """Ask the hooks at an act's own point; the act as they left it.

        Args:
            act: What the model wants.
            call: `turn`, `step` and `call_id` of its call.
            facts: Gives what every context has, for an operation.

        Raises:
            ActRefused: They refused it, or made something of it that is none.
        """
        point = _POINTS.get(type(act))
        if point is None or not self._hooks.at(point.operation):
            return act, ()
        context = point.context.model_validate({**facts(point.operation), **call, point.field: point.show(act)})
        outcome = await self._hooks.run(context)
        if outcome.refusal is not None or outcome.failure is not None:
            raise ActRefused(outcome.refusal or str(outcome.failure), outcome.verdicts)
        found = point.read(getattr(outcome.context, point.field))
        if isinstance(found, Misuse):
            raise ActRefused(found.text, outcome.verdicts)
        return found, outcome.verdicts
