"""`tiny-harness tasks`: list, show, complete, cancel, purge."""

import argparse
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from tiny_harness.cli.output import show, show_json, show_table, state_words, task_json
from tiny_harness.cli.start import add_target, call_target, load_settings, run_async

if TYPE_CHECKING:
    from tiny_harness.client import HarnessClient, MessageView, TaskView

NAME = "tasks"
HELP = "list, show, complete, cancel or purge tasks"

Act = Callable[["HarnessClient", str], Awaitable["TaskView"]]
ACTS: Final[dict[str, tuple[str, Act]]] = {
    "show": ("show a task and its conversation", lambda client, task_id: client.task(task_id, 1_000)),
    "complete": ("complete a task", lambda client, task_id: client.complete(task_id)),
    "cancel": ("cancel a task", lambda client, task_id: client.cancel(task_id)),
}
ENDS: Final = {"complete": "COMPLETED", "cancel": "CANCELED"}
"""How a task that has been acted on has ended."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    verbs = parser.add_subparsers(title="verbs", metavar="VERB", required=True, dest="verb")
    listing = verbs.add_parser("list", help="list your tasks, newest change first")
    listing.add_argument("--limit", type=_count, default=50, help="how many (default: 50)")
    for verb, (text, _) in ACTS.items():
        verbs.add_parser(verb, help=text).add_argument("task", metavar="ID")
    purge = verbs.add_parser("purge", help="delete ended tasks that are older than [retention] says")
    purge.add_argument("--dry-run", action="store_true", help="only count them")
    for verb, sub in verbs.choices.items():
        sub.add_argument("--json", action="store_true", help="print JSON")
        sub.add_argument("--config", metavar="PATH", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
        if verb != "purge":
            add_target(sub)


def run(args: argparse.Namespace) -> int:
    """Run a verb."""
    verbs = {"list": _list, "purge": _purge}
    return run_async(verbs.get(args.verb, _act)(args))


async def _list(args: argparse.Namespace) -> int:
    found = await call_target(args, lambda client: _newest(client, args.limit))
    if args.json:
        show_json([task_json(task) for task in found])
        return 0
    from tiny_harness.states import describe

    rows = [(task.task_id, describe(task.state, task.sub_state), _minute(task), task.name) for task in found]
    show_table(("TASK", "STATE", "CHANGED (UTC)", "NAME"), rows) if rows else show("no tasks yet")
    return 0


def _minute(task: "TaskView") -> str:
    return f"{task.updated_at:%Y-%m-%d %H:%M}" if task.updated_at else ""


async def _newest(client: "HarnessClient", limit: int) -> list["TaskView"]:
    found: list[TaskView] = []
    after: str | None = None
    while len(found) < limit:
        page = await client.tasks(limit=min(100, limit - len(found)), after=after)
        found.extend(page.tasks)
        after = page.after
        if after is None:
            break
    return found


async def _act(args: argparse.Namespace) -> int:
    task = await _done(args)
    if args.json:
        show_json(task_json(task))
        return 0
    show(f"{task.task_id}  {task.name or ''}\n{state_words(task)}")
    if args.verb == "show":
        _show_all(task)
    return 0


def _show_all(task: "TaskView") -> None:
    """Show what was chosen for a task, what it is a part of, its parts, and its conversation."""
    from tiny_harness.tui.printable import one_line

    facts = [("model", task.model), ("effort", task.effort)]
    facts += [("part of", parent) for parent in task.parent_tasks]
    for child in task.sub_tasks:
        state = child.state.removeprefix("TASK_STATE_")
        facts.append(("sub-task", f"{child.task_id} {state}{f', {child.sub_state}' if child.sub_state else ''}"))
    for name, value in facts:
        if value:
            show(f"{name}: {one_line(value)}")
    for message in task.messages:
        show(f"\n{_speaker(message)}: {message.text}")


def _speaker(message: "MessageView") -> str:
    if message.role == "user":
        return "you"
    if message.command is None:
        return "agent"
    return f"harness, /{message.command.name} {message.command.outcome}"


async def _done(args: argparse.Namespace) -> "TaskView":
    """Act on a task. When a harness went away with the answer, an end that it had reached is no refusal."""
    from tiny_harness.errors import TaskEnded

    attempts = 0

    async def act(client: "HarnessClient") -> "TaskView":
        nonlocal attempts
        attempts += 1
        try:
            return await ACTS[args.verb][1](client, args.task)
        except TaskEnded as refusal:
            if attempts == 1 or refusal.state != ENDS.get(args.verb):
                raise
            return await client.task(args.task)

    return await call_target(args, act)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError("must be a number above 0")
    return int(text)


async def _purge(args: argparse.Namespace) -> int:
    settings = load_settings(args, create=True)
    from datetime import timedelta

    from tiny_harness.store import open_store

    async with open_store(settings) as store:
        age = timedelta(days=settings.retention.tasks_days)
        count = await store.purge(age, dry_run=args.dry_run)
    if args.json:
        show_json({"purged": 0 if args.dry_run else count, "found": count})
    else:
        show(f"{'would delete' if args.dry_run else 'deleted'} {count} ended tasks")
    return 0
