"""What a slash command does to its task: recorded, answered, and nothing else changed but by its effects. Pure.

A command never wakes a parked task's model, never waits for a running turn, and leaves state and sub-state as they are
(DESIGN: a task's life).
"""

from typing import Any, Final

from tiny_harness.contracts import Input, Model, Sender, TaskSnapshot
from tiny_harness.effects import CommandOutcome, Effect
from tiny_harness.errors import QueueFull
from tiny_harness.hooks.verdict import Verdict
from tiny_harness_engine.core.drafts import Decision, Draft
from tiny_harness_engine.core.effects import apply_effects

MAX_COMMANDS: Final = 20
"""Commands that may run, or wait to run, on one task."""


class CommandDone(Model):
    """How a command went."""

    name: str
    outcome: CommandOutcome
    reply: str
    data: dict[str, Any] | None = None
    effects: tuple[Effect, ...] = ()
    """Checked already."""
    child_id: str = ""
    """The sub-task that was made for it, if its effects say so."""
    verdicts: tuple[Verdict, ...] = ()


def answer(recorded: Decision, message_id: str, done: CommandDone) -> Decision:
    """Record a command together with its reply.

    Args:
        recorded: The command's own event, from `lifecycle.open_task` or `lifecycle.accept`.
        message_id: Of the command.
        done: How it went.
    """
    after = apply_effects(recorded.snapshot, done.effects, done.child_id)
    drafts = (*recorded.drafts, _reply(after, message_id, done))
    return recorded.model_copy(update={"snapshot": after, "drafts": drafts, "verdicts": done.verdicts})


def queue(recorded: Decision, name: str, message_id: str, sender: Sender) -> Decision:
    """Record a command whose body runs later, in an activity of its own.

    Raises:
        QueueFull: Too many wait already.
    """
    waiting = recorded.snapshot.commands
    if len(waiting) >= MAX_COMMANDS:
        raise QueueFull(MAX_COMMANDS)
    command = Input(seq=recorded.snapshot.head + 1, message_id=message_id, sender=sender, command=name)
    after = recorded.snapshot.model_copy(update={"commands": (*waiting, command)})
    return recorded.model_copy(update={"snapshot": after})


def end(snapshot: TaskSnapshot, command: Input, done: CommandDone) -> Decision | None:
    """End a command that waited; `None` if it, or its task, has ended already."""
    if snapshot.state.is_terminal or command not in snapshot.commands:
        return None
    left = tuple(one for one in snapshot.commands if one != command)
    after = apply_effects(snapshot.model_copy(update={"commands": left}), done.effects, done.child_id)
    drafts = (_reply(after, command.message_id, done),)
    return Decision(snapshot=after, drafts=drafts, received_as="command", verdicts=done.verdicts)


def _reply(after: TaskSnapshot, message_id: str, done: CommandDone) -> Draft:
    return Draft(
        kind="reply",
        state=after.state,
        sub_state=after.sub_state,
        in_reply_to=(message_id,),
        words=done.reply,
        data=done.data,
        command=done.name,
        outcome=done.outcome,
        tells_task=bool(done.effects),
    )
