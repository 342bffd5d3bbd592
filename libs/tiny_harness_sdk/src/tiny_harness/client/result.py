"""What a turn's events come to."""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass

from tiny_harness.client.events import Replied, TaskEvent, TaskShown
from tiny_harness.client.fold import fold
from tiny_harness.client.turn import later_than
from tiny_harness.client.views import CommandAnswer, MessageView, TaskView
from tiny_harness.intake import read_command

OnEvent = Callable[[TaskEvent], None]
"""Is told of each event as it happens."""


@dataclass(frozen=True, slots=True)
class TurnResult:
    """How a turn ended, or what became of a command."""

    task: TaskView
    reply: str
    """The agent's words, or the harness's to a command; empty if the turn was cut. A question is a reply, too."""
    command: CommandAnswer | None = None
    """Set if the message was a command."""
    is_refused: bool = False
    """Whether a policy refused the message after it was taken in: the reply says why, and no model read it."""


@dataclass(frozen=True, slots=True)
class Told:
    """What a stream told."""

    view: TaskView | None
    is_whole: bool
    """Whether the view is the whole task, not only what changed."""
    reply: Replied | None


async def gather(
    events: AsyncGenerator[TaskEvent], is_reply: Callable[[Replied], bool], on_event: OnEvent | None
) -> Told:
    """Read a stream to its end; of several replies the last one counts."""
    view, reply, is_whole = None, None, False
    async with aclosing(events) as told:
        async for event in told:
            view, is_whole = fold(view, event), is_whole or isinstance(event, TaskShown)
            if isinstance(event, Replied) and is_reply(event):
                reply = event
            if on_event is not None:
                on_event(event)
    return Told(view, is_whole, reply)


def reply_in(task: TaskView, message_id: str, text: str) -> MessageView | None:
    """Find what answered a message in a task's history: its command's reply, or else the agent's last words."""
    later = [message for message in later_than(message_id, task) if message.role == "agent"]
    shape = read_command(text)
    answers = [message for message in later if message.command and shape and message.command.name == shape.name]
    said = [message for message in later if message.command is None]
    return answers[0] if answers else said[-1] if said else None
