"""The commands that ship with the harness, and the role policy before all commands (R7 to R10, abuse cases 1, 2, 4).

Each body is a pure function of its context: what it wants to change it answers as effects, which the engine validates.
"""

import re
from typing import Any, Final, get_args

from tiny_harness.access import Act, may, strongest_role
from tiny_harness.commands.registry import CommandHandler, command_executor
from tiny_harness.commands.spec import CommandSpec
from tiny_harness.effects import (
    MAX_GOAL_CHARS,
    MAX_REPLY_CHARS,
    AddParticipant,
    CommandResult,
    CreateSubTask,
    SetEffort,
    SetModel,
)
from tiny_harness.errors import HookAbort
from tiny_harness.ext.supervision import SupervisionData, marks
from tiny_harness.ext.task import PARTICIPANT_ID_PATTERN, Role
from tiny_harness.hooks.contexts import CommandContext
from tiny_harness.hooks.executor import Executor
from tiny_harness.states import TaskState, describe

ROLES: Final[tuple[Role, ...]] = get_args(Role)
_WHO: Final[dict[Role | None, str]] = {
    "admin": "an admin",
    "reporter": "a reporter",
    "assignee": "an assignee",
    "watcher": "a watcher",
    None: "a stranger",
}
INVITED_ROLE: Final[Role] = "assignee"
"""The role of somebody who is invited without one: they take part."""

_SPECS: Final = (
    CommandSpec(
        name="model",
        description="Show the model, or choose another one",
        argument_hint="[name]",
        act="control the task",
    ),
    CommandSpec(
        name="effort",
        description="Show how hard the model thinks, or change it",
        argument_hint="[low|medium|high]",
        act="control the task",
    ),
    CommandSpec(
        name="sub-task",
        description="Start a sub-task as a conversation of its own",
        argument_hint="<description>",
        act="control the task",
    ),
    CommandSpec(name="status", description="Show where the task stands", act="read the task"),
    CommandSpec(
        name="invite",
        description="Put somebody on the task",
        argument_hint="<participant> [role]",
        act="change participants",
    ),
    CommandSpec(name="help", description="List the commands", act="read the task"),
)


async def model(context: CommandContext) -> CommandResult:
    """`/model [name]`: show the task's model, or choose one of those that may be selected (R7)."""
    wanted, harness = context.arguments.strip(), context.harness
    now = context.task.model or harness.default_model or "the provider's own"
    choice = f"You can choose: {', '.join(harness.models)}." if harness.models else "There is nothing to choose."
    if not wanted:
        return CommandResult(reply=f"The model is {now}. {choice}", data={"model": now, "models": list(harness.models)})
    if wanted not in harness.models:
        return CommandResult(reply=f"There is no such model to choose. {choice} It stays {now}.", outcome="refused")
    return CommandResult(reply=f"The model is now {wanted}.", data={"model": wanted}, effects=(SetModel(model=wanted),))


async def effort(context: CommandContext) -> CommandResult:
    """`/effort [value]`: show or change how hard the model thinks (R8)."""
    wanted, harness = context.arguments.strip(), context.harness
    now = context.task.effort or harness.default_effort
    choice = f"You can choose: {', '.join(harness.efforts)}."
    if not wanted:
        shown = f"The effort is {now}." if now else "No effort is set; the provider decides."
        return CommandResult(reply=f"{shown} {choice}", data={"effort": now, "efforts": list(harness.efforts)})
    if wanted not in harness.efforts:
        return CommandResult(reply=f"There is no such effort. {choice} It stays {now or 'unset'}.", outcome="refused")
    return CommandResult(
        reply=f"The effort is now {wanted}.", data={"effort": wanted}, effects=(SetEffort(effort=wanted),)
    )


async def sub_task(context: CommandContext) -> CommandResult:
    """`/sub-task <description>`: start a conversation under this task (R9)."""
    goal = context.arguments.strip()
    if not goal:
        return CommandResult(reply="Say what the sub-task is about: /sub-task <description>", outcome="refused")
    if len(goal) > MAX_GOAL_CHARS:
        return CommandResult(reply=f"A description has {MAX_GOAL_CHARS} characters at most.", outcome="refused")
    task_id = context.new_task_id
    return CommandResult(
        reply=f"Sub-task {task_id} is open and waits for your first message there.",
        data={"task_id": task_id},
        effects=(CreateSubTask(goal=goal),),
    )


async def invite(context: CommandContext) -> CommandResult:
    """`/invite <participant> [role]`: put somebody on the task, who then finds it in their list."""
    words = context.arguments.split()
    usage = f"/invite <participant> [{'|'.join(ROLES)}]"
    if len(words) not in (1, 2):
        return CommandResult(reply=f"Say whom to invite: {usage}", outcome="refused")
    who, role = words[0], words[1] if len(words) == 2 else INVITED_ROLE
    if not re.fullmatch(PARTICIPANT_ID_PATTERN, who):
        return CommandResult(
            reply=f"A participant's id has 1 to 128 letters, digits or ._:@- and no others: {usage}", outcome="refused"
        )
    if role not in ROLES:
        return CommandResult(reply=f"There is no such role: {usage}", outcome="refused")
    if any(person.id == who and person.role == role for person in context.participants):
        return CommandResult(reply=f"{who} is on the task as {role} already.", data={"id": who, "role": role})
    return CommandResult(
        reply=f"{who} is on the task now, as {role}.",
        data={"id": who, "role": role},
        effects=(AddParticipant(id=who, role=role),),
    )


async def help_(context: CommandContext) -> CommandResult:
    """`/help`: list the commands."""
    lines = [
        f"/{offer.name} {offer.argument_hint}".rstrip() + (f"  {offer.description}" if offer.description else "")
        for offer in context.harness.commands
    ]
    data = {"commands": [offer.model_dump() for offer in context.harness.commands]}
    return CommandResult(reply=_text(lines) or "There are no commands.", data=data)


async def status(context: CommandContext) -> CommandResult:
    """`/status`: say where the task stands, without asking the model (R10)."""
    task, harness = context.task, context.harness
    data: dict[str, Any] = {
        "task_id": task.task_id,
        "name": task.name,
        "state": task.state,
        "sub_state": task.sub_state,
        "model": task.model or harness.default_model,
        "effort": task.effort or harness.default_effort,
        "plan": {"done": task.plan_done, "total": task.plan_total},
        "sub_tasks": [child.model_dump() for child in task.sub_tasks],
        "usage": task.usage,
    }
    lines = [
        f"Task {task.task_id}",
        f"Name: {' '.join((task.name or 'none').split())}",
        f"State: {_state(task.state, task.sub_state)}",
        f"Model: {data['model'] or 'the provider decides'}",
        f"Effort: {data['effort'] or 'unset'}",
        f"Plan: {task.plan_done} of {task.plan_total} steps done" if task.plan_total else "Plan: none",
        "Sub-tasks:" if task.sub_tasks else "Sub-tasks: none",
        *(f"  {child.task_id}: {_state(child.state, child.sub_state)}" for child in task.sub_tasks),
        f"Usage: {_usage(task.usage)}",
    ]
    if task.supervision is not None:
        known = SupervisionData.model_validate(task.supervision)
        data["supervision"] = task.supervision
        lines += [f"Worker: {', '.join((known.worker, *marks(known)))}"]
    if harness.hook_health is not None:
        data["hooks"] = list(harness.hook_health)
        lines += ["Hooks:" if harness.hook_health else "Hooks: none"]
        lines += [f"  {hook.get('name')} at {hook.get('point')}: {hook.get('state')}" for hook in harness.hook_health]
    if harness.tool_health:
        data["tools"] = list(harness.tool_health)
        lines += [
            "Tool servers:",
            *(f"  {server.get('name')}: {server.get('state')}" for server in harness.tool_health),
        ]
    return CommandResult(reply=_text(lines), data=data)


def _usage(usage: dict[str, Any]) -> str:
    """Say what models were used for; what has no price is said so."""
    counts = {key: value for key, value in usage.items() if isinstance(value, int) and (value or "cached" not in key)}
    parts = [f"{value} {key.replace('_', ' ')}" for key, value in counts.items()]
    if "cost" in usage:
        parts.append(f"cost {usage['cost']}")
    if usage.get("unpriced"):
        parts.append(f"no price for {', '.join(usage['unpriced'])}")
    return ", ".join(parts) or "none"


def _text(lines: list[str]) -> str:
    """Join the lines of a reply; those that would make it too long are left out, and the reply says so."""
    text = "\n".join(lines)
    if len(text) <= MAX_REPLY_CHARS:
        return text
    return text[: MAX_REPLY_CHARS - 100].rpartition("\n")[0] + "\n… and more than fits here"


def _state(state: str, sub_state: str | None) -> str:
    """Name a state as programs do and as people read it."""
    return f"{state.removeprefix('TASK_STATE_')} ({describe(TaskState(state), sub_state)})"


_BODIES: Final[dict[str, CommandHandler]] = {
    "model": model,
    "effort": effort,
    "sub-task": sub_task,
    "status": status,
    "invite": invite,
    "help": help_,
}

BUILTIN_COMMANDS: Final = _SPECS
"""The specs of all built-ins."""


def builtin_executors() -> tuple[Executor, ...]:
    """Make the bodies of all built-ins, at the default priority: whoever stands before them replaces them."""
    return tuple(
        command_executor(name, body, executor=f"builtin/{name}", is_builtin=True) for name, body in _BODIES.items()
    )


def role_policy(specs: tuple[CommandSpec, ...]) -> Executor:
    """Make the policy that refuses a command to a sender whose role does not allow what it does (abuse case 4).

    Args:
        specs: All commands that there are, each with the act that it takes.
    """
    acts: dict[str, Act] = {spec.name: spec.act for spec in specs}

    async def check(context: CommandContext) -> None:
        who = context.sender.id if context.sender else ""
        role = strongest_role(context.participants, who)
        act = acts.get(context.command, "send a message")
        if role is None or not may(role, act):
            raise HookAbort(f"{_WHO[role]} may not use /{context.command}")

    return Executor(
        name="builtin/role-policy", operation="command.invoked", phase="pre", call=check, priority=0, is_builtin=True
    )
