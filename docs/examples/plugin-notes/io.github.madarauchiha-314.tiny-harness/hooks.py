"""The functions that hooks.json names. The harness calls each with a context."""

from tiny_harness.effects import CommandResult
from tiny_harness.errors import CommandFailed, HookAbort
from tiny_harness.hooks.contexts import CommandContext, RequestContext

from .words import CODENAMES

MAX_CHARS = 500
notes: dict[str, list[str]] = {}
"""By task. In memory only: a real plugin would keep them where they outlive a restart."""


def note(context: CommandContext) -> CommandResult:
    """`/note [text]`: keep a note, or show what was kept."""
    kept = notes.setdefault(context.task.task_id, [])
    text = context.arguments.strip()
    if len(text) > MAX_CHARS:
        raise CommandFailed(f"A note has {MAX_CHARS} characters at most.")
    if text:
        kept.append(text)
        return CommandResult(reply=f"Noted, as number {len(kept)}.", data={"count": len(kept)})
    lines = [f"{number}. {one}" for number, one in enumerate(kept, start=1)]
    return CommandResult(reply="\n".join(lines) or "There are no notes yet.", data={"notes": list(kept)})


async def no_codenames(context: RequestContext) -> None:
    """Refuse a message that names a secret project, before the model or anybody else reads it."""
    if any(name in context.text.lower() for name in CODENAMES):
        raise HookAbort("that project has no name here")
