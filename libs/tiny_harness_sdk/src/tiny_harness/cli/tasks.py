"""`tiny-harness tasks`: list, show, answer, update, complete, cancel, acknowledge, repair, purge."""

import argparse
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from tiny_harness.cli.output import (
    answer_hint,
    choices_line,
    show,
    show_json,
    show_table,
    state_words,
    supervision_marks,
    task_json,
)
from tiny_harness.cli.start import add_target, ask_for_token, call_target, load_settings, run_async
from tiny_harness.cli.tasks_repair import add_repair_arguments, repair
from tiny_harness.cli.turn import show_turn

if TYPE_CHECKING:
    from tiny_harness.client import HarnessClient, MessageView, Question, TaskView
    from tiny_harness.contracts import Usage
    from tiny_harness.ext.plan import Plan

NAME = "tasks"
HELP = "list, show, answer, complete, cancel, repair or purge tasks"

MAX_OUTPUT: Final = 100
"""Characters of a plan step's output that are shown."""

Act = Callable[["HarnessClient", str], Awaitable["TaskView"]]
ACTS: Final[dict[str, tuple[str, Act]]] = {
    "show": ("show a task and its conversation", lambda client, task_id: client.task(task_id, 1_000)),
    "complete": ("complete a task", lambda client, task_id: client.complete(task_id)),
    "cancel": ("cancel a task", lambda client, task_id: client.cancel(task_id)),
    "ack": (
        "say that you have what you needed of a task; it closes nothing",
        lambda client, task_id: client.acknowledge(task_id),
    ),
}
OF_OPERATORS: Final = ("purge", "repair")
"""Verbs that go to store and Temporal themselves."""
ENDS: Final = {"complete": "COMPLETED", "cancel": "CANCELED"}
"""How a task that has been acted on has ended."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    verbs = parser.add_subparsers(title="verbs", metavar="VERB", required=True, dest="verb")
    listing = verbs.add_parser("list", help="list your tasks, newest change first")
    listing.add_argument("--stalled", action="store_true", help="only tasks whose worker does not answer reminders")
    listing.add_argument("--limit", type=_count, default=50, help="how many (default: 50)")
    for verb, (text, _) in ACTS.items():
        verbs.add_parser(verb, help=text).add_argument("task", metavar="ID")
    answer = verbs.add_parser("answer", help="answer a task's question, and print what the agent says then")
    answer.add_argument("task", metavar="ID")
    answer.add_argument("request", metavar="REQUEST", help="the question's id, as `tasks show` tells it")
    answer.add_argument("value", metavar="VALUE", help="one of its choices")
    answer.add_argument("--reason", help="why; the agent reads it if it is refused something")
    update = verbs.add_parser("update", help="say, as a task's worker, how it stands")
    update.add_argument("task", metavar="ID")
    update.add_argument("status", choices=("done", "blocked", "failed", "running"))
    update.add_argument(
        "summary", metavar="SUMMARY", nargs="?", default="", help="the result, what you need, or why not"
    )
    update.add_argument("--minutes", type=_count, default=0, help="of running: how long you will say nothing")
    purge = verbs.add_parser("purge", help="delete ended tasks that are older than [retention] says")
    purge.add_argument("--dry-run", action="store_true", help="only count them")
    add_repair_arguments(verbs.add_parser("repair", help="mend tasks whose run is stuck, or knows more than the store"))
    for verb, sub in verbs.choices.items():
        sub.add_argument("--json", action="store_true", help="print JSON")
        sub.add_argument("--config", metavar="PATH", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
        if verb not in OF_OPERATORS:
            add_target(sub)


def run(args: argparse.Namespace) -> int:
    """Run a verb."""
    if args.verb not in OF_OPERATORS:
        ask_for_token(args)
    verbs = {"list": _list, "answer": _answer, "update": _update, "purge": _purge, "repair": repair}
    return run_async(verbs.get(args.verb, _act)(args))


async def _list(args: argparse.Namespace) -> int:
    found = await call_target(args, lambda client: _newest(client, args.limit, stalled=args.stalled))
    if args.json:
        show_json([task_json(task) for task in found])
        return 0
    from tiny_harness.states import describe

    rows = [
        (
            task.task_id,
            " · ".join((describe(task.state, task.sub_state), *supervision_marks(task))),
            _minute(task),
            task.name,
        )
        for task in found
    ]
    none = "no task is stalled" if args.stalled else "no tasks yet"
    show_table(("TASK", "STATE", "CHANGED (UTC)", "NAME"), rows) if rows else show(none)
    return 0


def _minute(task: "TaskView") -> str:
    return f"{task.updated_at:%Y-%m-%d %H:%M}" if task.updated_at else ""


async def _newest(client: "HarnessClient", limit: int, *, stalled: bool) -> list["TaskView"]:
    found: list[TaskView] = []
    after: str | None = None
    while len(found) < limit:
        page = await client.tasks(limit=100 if stalled else min(100, limit - len(found)), after=after)
        found.extend(task for task in page.tasks if not stalled or (task.supervision and task.supervision.stalled))
        after = page.after
        if after is None:
            break
    return found[:limit]


async def _answer(args: argparse.Namespace) -> int:
    """Answer under one message id, however often the harness has to be found again."""
    from tiny_harness.ids import new_id

    message_id = new_id()
    result = await call_target(
        args,
        lambda client: client.answer(args.task, args.request, args.value, args.reason, message_id=message_id),
    )
    return show_turn(result, as_json=args.json)


async def _update(args: argparse.Namespace) -> int:
    """Say how a task stands, under one message id, however often the harness has to be found again."""
    from tiny_harness.ids import new_id

    message_id = new_id()
    task = await call_target(
        args,
        lambda client: client.update(args.task, args.status, args.summary, minutes=args.minutes, message_id=message_id),
    )
    if args.json:
        show_json(task_json(task))
    else:
        show(f"{task.task_id}  {task.name or ''}\n{state_words(task)}")
    return 0


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
    """Show what was chosen for a task, what it is a part of, its plan and parts, its conversation, and what it asks."""
    from tiny_harness.tui.printable import one_line

    facts = [("model", task.model), ("effort", task.effort)]
    if task.supervision is not None:
        facts += [("worker", task.supervision.worker), ("its last words", task.supervision.last_worker_line)]
        facts += [("acknowledged by", ", ".join(task.supervision.acknowledged))]
    facts += [("part of", parent) for parent in task.parent_tasks]
    for child in task.sub_tasks:
        state = child.state.removeprefix("TASK_STATE_")
        facts.append(("sub-task", f"{child.task_id} {state}{f', {child.sub_state}' if child.sub_state else ''}"))
    for name, value in facts:
        if value:
            show(f"{name}: {one_line(value)}")
    if task.plan is not None:
        _show_plan(task.plan)
    if task.usage is not None:
        show(f"usage: {_usage_words(task.usage)}")
    for message in task.messages:
        show(f"\n{_speaker(message)}: {message.text}")
    if task.question is not None:
        _show_question(task.task_id, task.question)


def _show_plan(plan: "Plan") -> None:
    from tiny_harness.tui.printable import one_line

    done = sum(step.status == "done" for step in plan.steps)
    show(f"plan: {done} of {len(plan.steps)} steps done")
    for step in plan.steps:
        output = one_line(step.output or "")
        short = output if len(output) <= MAX_OUTPUT else f"{output[:MAX_OUTPUT]} …"
        show(f"  {step.status:<8} {one_line(step.name)}{f': {short}' if short else ''}")


def _usage_words(usage: "Usage") -> str:
    from tiny_harness.tui.printable import one_line

    cached = f" ({usage.cached_tokens} cached)" if usage.cached_tokens else ""
    words = [f"{usage.calls} calls", f"{usage.input_tokens} tokens in{cached}", f"{usage.output_tokens} out"]
    if usage.cost is not None:
        words.append(f"cost {usage.cost:f}")
    if usage.unpriced:
        words.append(f"no price for {', '.join(one_line(model) for model in usage.unpriced)}")
    return ", ".join(words)


def _show_question(task_id: str, question: "Question") -> None:
    named = f"question {question.request_id}" if question.request_id else "question"
    show(f"\n{named}: {question.words}")
    if question.choices:
        show(choices_line(question))
    show(answer_hint(task_id, question))


def _speaker(message: "MessageView") -> str:
    if message.role != "agent":
        return "you" if message.role == "user" else "note"
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
