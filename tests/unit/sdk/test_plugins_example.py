"""The example plugin of the guide is what the guide says, and works."""

import re
from pathlib import Path
from typing import Any

import pytest

from tiny_harness.commands.builtin import role_policy
from tiny_harness.effects import CommandResult
from tiny_harness.ext.task import Participant
from tiny_harness.hooks import Hooks, Outcome
from tiny_harness.hooks.contexts import CommandContext, RequestContext, SenderRef, TaskRef
from tiny_harness.plugins import Plugin, builtin_plugin, load_plugin, load_plugins, resolve

DOCS = Path(__file__).parents[3] / "docs"
FOLDER = DOCS / "examples" / "plugin-notes"
GUIDE = (DOCS / "guide" / "write-a-plugin.md").read_text()


@pytest.fixture
def plugins() -> tuple[Plugin, ...]:
    """Load the built-in plugin and the example, as a start does."""
    found, rejected = load_plugins([FOLDER])
    plugins, reports = resolve([builtin_plugin(), *found])
    assert rejected == ()
    assert [report.problems for report in reports] == [(), ()]
    return plugins


@pytest.fixture
def hooks(plugins: tuple[Plugin, ...]) -> Hooks:
    """Make the chains of it, with the role policy that every harness has."""
    policy = role_policy(tuple(spec for plugin in plugins for spec in plugin.commands))
    return Hooks([policy, *(executor for plugin in plugins for executor in plugin.executors)])


def base(task_id: str, role: Any = "reporter") -> dict[str, Any]:
    return {
        "phase": "pre",
        "task": TaskRef(task_id=task_id, context_id="c1", state="TASK_STATE_INPUT_REQUIRED"),
        "participants": (Participant(id="ann", role=role),),
        "sender": SenderRef(id="ann"),
        "correlation_id": "k1",
    }


async def note(hooks: Hooks, words: str, task_id: str = "t1", role: Any = "reporter") -> Outcome[CommandContext]:
    context = CommandContext(operation="command.invoked", command="note", arguments=words, **base(task_id, role))
    return await hooks.run(context)


def reply(outcome: Outcome[CommandContext]) -> str:
    assert outcome.context.result is not None
    return outcome.context.result.reply


async def test_notes_are_kept_for_each_task(hooks: Hooks) -> None:
    assert reply(await note(hooks, "")) == "There are no notes yet."
    assert reply(await note(hooks, "buy $(milk)")) == "Noted, as number 1."
    assert reply(await note(hooks, "call Bob")) == "Noted, as number 2."
    assert reply(await note(hooks, "")) == "1. buy $(milk)\n2. call Bob"
    assert reply(await note(hooks, "", task_id="t2")) == "There are no notes yet."


async def test_a_note_that_is_too_long_is_refused_in_words_and_not_kept(hooks: Hooks) -> None:
    outcome = await note(hooks, "x" * 501, task_id="t3")
    assert outcome.context.result == CommandResult(reply="A note has 500 characters at most.", outcome="refused")
    assert reply(await note(hooks, "", task_id="t3")) == "There are no notes yet."


async def test_a_watcher_may_not_take_notes(hooks: Hooks) -> None:
    assert (await note(hooks, "x", role="watcher")).refusal is not None


@pytest.mark.parametrize(("text", "is_refused"), [("About Project FALCON", True), ("About birds", False)])
async def test_a_codename_is_refused(hooks: Hooks, text: str, is_refused: bool) -> None:
    context = RequestContext(operation="request.received", message_id="m1", text=text, **base("t1"))
    outcome = await hooks.run(context)
    assert (outcome.refusal is not None) == is_refused
    assert outcome.failure is None


def test_the_remote_command_is_declared(plugins: tuple[Plugin, ...]) -> None:
    [remote] = plugins[1].remote
    assert (remote.name, remote.command, remote.url, remote.key_id) == (
        *("notes/deploy", "deploy", "http://127.0.0.1:8090/rpc", "deploys"),
    )


def test_the_guide_shows_the_files_as_they_are() -> None:
    for path in FOLDER.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            assert path.read_text().strip() in GUIDE, path.name


def test_the_guide_names_every_field_of_an_executor() -> None:
    from tiny_harness.plugins.documents import CommandEntry, ExecutorEntry

    named = set(re.findall(r"^\| `(\w+)` \|", GUIDE, flags=re.MULTILINE))
    assert {*ExecutorEntry.model_fields, *CommandEntry.model_fields} <= named


def test_the_report_in_the_guide_is_what_a_broken_copy_gives(tmp_path: Path) -> None:
    for path in FOLDER.rglob("*.*"):
        if path.is_file():
            copy = tmp_path / "notes" / path.relative_to(FOLDER)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(path.read_text().replace("hooks.py:note", "hooks.py:notes_"))
    plugin, report = load_plugin(tmp_path / "notes")
    assert plugin is not None
    _, [_, resolved] = resolve([builtin_plugin(), plugin])
    assert report.problems
    for problem in resolved.problems:
        assert problem in GUIDE
