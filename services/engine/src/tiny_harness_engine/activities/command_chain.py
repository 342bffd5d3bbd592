"""One command through its chain: context, hooks, body, checked effects (R6a; DESIGN: registry, commands)."""

import logging
import uuid
from collections.abc import Callable
from typing import Any, Final

from tiny_harness.access import strongest_role
from tiny_harness.effects import CommandOutcome, CommandResult, CreateSubTask
from tiny_harness.errors import CommandFailed
from tiny_harness.ext.commands import CommandOffer
from tiny_harness.ext.names import EXTENSION_BASE
from tiny_harness.ext.task import AGENT_ID, Participant
from tiny_harness.hooks import Hooks, Outcome
from tiny_harness.hooks.contexts import CommandContext, HarnessFacts, TaskCreatedContext
from tiny_harness.hooks.points import BODY
from tiny_harness.intake import CommandCall
from tiny_harness.settings import Settings
from tiny_harness_engine.activities.committer import Committer
from tiny_harness_engine.activities.family import tree_of
from tiny_harness_engine.core.commands import CommandDone
from tiny_harness_engine.core.drafts import NewChild
from tiny_harness_engine.core.effects import EFFORTS, Limits, apply_effects, check_effects, sub_task
from tiny_harness_engine.registry import Registry
from tiny_harness_engine.subject import Subject

Health = Callable[[], list[dict[str, Any]]]
"""How each hook is, or each tool server."""

_SUB_TASKS: Final = uuid.uuid5(uuid.NAMESPACE_URL, f"{EXTENSION_BASE}/sub-tasks")

log = logging.getLogger(__name__)


class CommandChain:
    """Runs commands, bound to a registry and to hooks."""

    def __init__(
        self,
        committer: Committer,
        registry: Registry,
        hooks: Hooks,
        settings: Settings,
        hook_health: Health,
        tool_health: Health,
    ) -> None:
        self._committer = committer
        self._registry = registry
        self._hooks = hooks
        self._hook_health = hook_health
        self._tool_health = tool_health
        choice = settings.choice
        self._max_tree = settings.tasks.max_tree
        self._limits = Limits(choice.selectable, settings.tasks.max_depth, settings.tasks.max_children)
        self._facts = HarnessFacts(
            models=choice.selectable,
            default_model=choice.model,
            efforts=EFFORTS,
            default_effort=choice.effort,
            commands=tuple(
                CommandOffer(name=spec.name, description=spec.description, argument_hint=spec.argument_hint)
                for spec in registry.commands
            ),
        )

    def knows(self, call: CommandCall | None) -> bool:
        """Whether a text of a command's shape is one."""
        return call is not None and self._registry.commands.get(call.name) is not None

    def is_instant(self, call: CommandCall) -> bool:
        """Whether it may run while its task waits: only bodies of ours, and nobody elsewhere has a say."""
        bodies = self._hooks.at("command.invoked", "in", call.name)
        elsewhere = self._hooks.has_remote("command.invoked", call.name) or self._hooks.has_remote("task.created")
        return not elsewhere and all(body.is_builtin for body in bodies)

    async def run(self, subject: Subject, call: CommandCall, message_id: str) -> CommandDone:
        """Run a command. Whatever goes wrong in its chain is its answer; the store's failures are raised."""
        new_task_id = str(uuid.uuid5(_SUB_TASKS, f"{subject.snapshot.task_id}\0{message_id}"))
        context = CommandContext(
            **subject.facts("command.invoked"),
            command=call.name,
            arguments=call.arguments,
            message_id=message_id,
            new_task_id=new_task_id,
            harness=self._facts_for(subject),
        )
        outcome = await self._hooks.run(context)
        done = await self._finish(subject, call.name, outcome)
        log.log(
            logging.INFO if done.outcome == "done" else logging.WARNING,
            "command /%s on task %s: %s (%s)",
            call.name,
            subject.snapshot.task_id,
            done.outcome,
            context.correlation_id,
        )
        return done

    def _facts_for(self, subject: Subject) -> HarnessFacts:
        """What the sender may know: how the hooks are is for those who may change something about it."""
        role = strongest_role(subject.snapshot.participants, subject.sender.id if subject.sender else "")
        shows_health = role == "admin" or (role == "reporter" and subject.snapshot.parent is None)
        if not shows_health:
            return self._facts
        health = {"hook_health": tuple(self._hook_health()), "tool_health": tuple(self._tool_health())}
        return self._facts.model_copy(update=health)

    async def _finish(self, subject: Subject, name: str, outcome: Outcome[CommandContext]) -> CommandDone:
        context, result = outcome.context, outcome.context.result

        def ended(how: CommandOutcome, reply: str) -> CommandDone:
            return CommandDone(name=name, outcome=how, reply=reply, verdicts=outcome.verdicts)

        if outcome.refusal is not None:
            return ended("refused", outcome.refusal)
        if outcome.failure is not None:
            why = outcome.failure
            cause = why.reason if why.point == BODY else str(why)
            return ended("failed", f"/{name} failed: {cause} (reference {context.correlation_id})")
        if result is None:
            return ended("failed", f"/{name} has no body that answers (reference {context.correlation_id})")
        if result.outcome == "refused":
            return ended("refused", result.reply)
        try:
            await self._carry_out(subject, context, result)
        except CommandFailed as error:
            return ended("refused", str(error))
        return ended("done", result.reply).model_copy(
            update={"data": result.data, "effects": result.effects, "child_id": context.new_task_id}
        )

    async def _check_tree(self, subject: Subject, result: CommandResult) -> None:
        if not any(isinstance(effect, CreateSubTask) for effect in result.effects):
            return
        if len(await tree_of(self._committer.store, subject.snapshot)) >= self._max_tree:
            raise CommandFailed(f"a task and all its sub-tasks may be {self._max_tree} together")

    async def _carry_out(self, subject: Subject, context: CommandContext, result: CommandResult) -> None:
        """Check the effects, and make the sub-task that they want: it must be there before its parent names it."""
        sender = subject.sender
        check_effects(subject.snapshot, sender.id if sender else "", result.effects, self._limits)
        await self._check_tree(subject, result)
        after = apply_effects(subject.snapshot, result.effects, context.new_task_id)  # what a sub-task inherits (R7.3)
        for effect in result.effects:
            if sender is not None and isinstance(effect, CreateSubTask):
                reporter = Participant(id=sender.id, kind=sender.kind, role="reporter")
                agent = Participant(id=AGENT_ID, kind="agent", role="assignee")
                child = sub_task(after, context.new_task_id, reporter, agent)
                await self._may_start(Subject(child, subject.text.model_copy(update={"goal": effect.goal}), sender))
                await self._committer.start_child(NewChild(snapshot=child, goal=effect.goal))

    async def _may_start(self, child: Subject) -> None:
        context = TaskCreatedContext(**child.facts("task.created"), text=child.text.goal or "")
        outcome = await self._hooks.run(context)
        if outcome.refusal is not None or outcome.failure is not None:
            raise CommandFailed(outcome.refusal or str(outcome.failure))
