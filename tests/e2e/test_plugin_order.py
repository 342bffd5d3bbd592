"""Plugins that overrule built-ins, beside plugins that are wrong: the first of a name stays, the rest is reported."""

import json
import shutil
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.e2e.home import Home, Life
from tests.e2e.plugin_folder import at, body, write_plugin
from tests.e2e.surfaces import Surface, python_client, run_program
from tests.e2e.test_plugins import BUILT_IN, CHANGES, SCRIPT, connected, offers, on_every_surface
from tiny_harness.client import CommandAnswer

REASON = "nothing changes on a Friday"

POLICY = f"""
from tiny_harness import HookAbort

CHANGING = {[text.split()[0][1:] for text in CHANGES]}


def friday(context):
    if context.command in CHANGING:
        raise HookAbort("{REASON}")


async def brief(context):
    return "All is well."
"""


def policies(folder: Path) -> Path:
    """Write a plugin that replaces `/status` and refuses what would change a task."""
    executors = [body("status", "hooks.py:brief", priority=500), at("command.invoked.pre", "hooks.py:friday")]
    return write_plugin(folder / "policies", executors=executors, code=POLICY)


def wrong_ones(folder: Path) -> list[Path]:
    """Write plugins each of which has something wrong, after the first one in which nothing is."""
    ping = [{"name": "ping"}]

    def answering(words: str) -> str:
        return f"async def ping(context):\n    return {words!r}\n"

    half = write_plugin(
        folder / "half",
        commands=[*ping, {"name": "pong"}, {"name": "Shout"}],
        executors=[
            body("ping", "hooks.py:ping"),
            body("pong", "hooks.py:gone"),
            at("no.such.point", "hooks.py:ping"),
            at("command.invoked.post", "https://user:word@example.org/"),
        ],
        code=answering("from the first"),
    )
    twin = shutil.copytree(half, folder / "other-folder")
    second = write_plugin(
        folder / "second",
        commands=ping,
        executors=[body("ping", "hooks.py:ping")],
        code=answering("from the second"),
    )
    hollow = write_plugin(
        folder / "hollow",
        commands=[{"name": "void"}],
        executors=[body("ghost", "hooks.py:ghost")],
        code="def ghost(context):\n    return 'boo'\n",
    )
    crash = write_plugin(
        folder / "crash",
        commands=[{"name": "crash"}],
        executors=[body("crash", "hooks.py:crash")],
        code="raise SystemExit(3)\n",
    )
    lost = write_plugin(
        folder / "lost",
        manifest={"$schema": "https://example.org/other.json"},
        commands=[{"name": "lost"}],
        executors=[body("lost", "hooks.py:lost")],
        code="def lost(context):\n    return 'found'\n",
    )
    torn = write_plugin(folder / "torn")
    (torn / "plugin.json").write_text('{"name": ')
    return [half, twin, second, hollow, crash, lost, torn, folder / "not-there"]


PROBLEMS = [
    ("half", "command pong: has no body"),
    ("half", "command Shout: must match"),
    ("half", "executor half/pong: function 'gone' is not in hooks.py"),
    ("half", "executor half/no.such.point: "),
    ("half", "executor half/command.invoked.post: "),
    ("half", "is loaded already: two plugins may not have one name"),
    ("second", "command ping: is declared already, by half"),
    ("second", "executor second/ping: "),
    ("hollow", "command void: has no body"),
    ("hollow", "executor hollow/ghost: nobody declares the command 'ghost'"),
    ("crash", "executor crash/crash: "),
    ("crash", "command crash: has no body"),
    ("lost", "must name the `$schema`"),
    ("torn", "plugin.json"),
    ("not-there", ""),
]
"""What is said of each of the wrong ones."""


@pytest.fixture(scope="module")
async def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    return Home(tmp_path_factory.mktemp("broken") / "home", SCRIPT)


@pytest.fixture(scope="module")
async def life(home: Home) -> AsyncGenerator[Life]:
    folder = home.path.parent / "plugins"
    async with home.serving(policies(folder), *wrong_ones(folder)) as life:
        yield life


@on_every_surface
async def test_an_executor_that_stands_before_a_built_in_replaces_it(life: Life, surface: Surface) -> None:
    told = await surface(life, ["/status", "/model big", "/ping"])
    assert told.plain == [("All is well.", "done"), (REASON, "refused"), ("from the first", "done")]


async def test_a_refused_command_changes_nothing(life: Life, home: Home) -> None:
    async with connected(life) as client:
        task_id = (await client.send("hello")).task.task_id
        before, tasks = home.snapshot(task_id), home.task_ids()
        for text in CHANGES:
            result = await client.send(text, task_id=task_id)
            assert (result.reply, result.command) == (REASON, CommandAnswer(text.split()[0][1:], "refused"))
        after = await client.task(task_id)
    assert (home.snapshot(task_id), home.task_ids()) == (before, tasks)
    assert [message.text for message in after.messages][2:] == [line for text in CHANGES for line in (text, REASON)]


async def test_the_card_lists_what_works_and_nothing_else(life: Life) -> None:
    assert [offer["name"] for offer in await offers(life)] == [*BUILT_IN, "ping"]


async def test_what_is_no_command_after_all_is_words(life: Life) -> None:
    said = ["/pong", "/void", "/ghost", "/crash", "/lost", "/Shout"]
    told = await python_client(life, said)
    assert told.plain == [(f"{turn}: {text}", None) for turn, text in enumerate(said, start=1)]


def test_a_start_logs_what_was_left_out(life: Life, home: Home) -> None:
    del life
    lines = [line for line in home.log.splitlines() if '"warning"' in line]
    for plugin, problem in PROBLEMS:
        assert [line for line in lines if f"plugin {plugin}: " in line and problem in line], (plugin, problem, lines)


async def test_doctor_shows_what_was_left_out(life: Life, home: Home) -> None:
    del life
    doctor = (sys.executable, "-m", "tiny_harness", "--config", str(home.config), "doctor", "--json")
    status, out = await run_program(*doctor, HOME=str(home.path))
    checks = [check for check in json.loads(out) if check["check"].startswith("plugin ")]
    assert status == 1
    assert [check["check"] for check in checks if check["ok"]] == ["plugin policies"]
    assert len(checks) == 1 + 8
    for plugin, problem in PROBLEMS:
        assert [check for check in checks if check["check"] == f"plugin {plugin}" and problem in check["detail"]], (
            plugin,
            problem,
            checks,
        )
