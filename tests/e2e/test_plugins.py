"""Plugins as their users meet them: commands on the card, and the same answers on every surface."""

import shutil
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from tests.e2e.home import Home, Life
from tests.e2e.plugin_folder import Json
from tests.e2e.service import Service
from tests.e2e.surfaces import SURFACES, Surface, full_screen, python_client
from tests.served import ROOT, http_client
from tiny_harness.client import Address, HarnessClient, connect
from tiny_harness.commands.builtin import BUILTIN_COMMANDS
from tiny_harness.errors import RefusedByPolicy
from tiny_harness.ext import commands

SCRIPT = Path(__file__).with_name("plugins.toml")
EXAMPLES = ROOT / "docs" / "examples"
BUILT_IN = [spec.name for spec in BUILTIN_COMMANDS]
CODENAME = "About Project Falcon"
CODENAME_REASON = "that project has no name here"

CHANGES = ("/model big", "/effort high", "/sub-task dig", "/invite bob")
"""Commands, each of which changes a task."""

on_every_surface = pytest.mark.parametrize("surface", SURFACES, ids=lambda surface: surface.__name__)


async def offers(life: Life) -> list[Json]:
    """Read what the card says of commands."""
    async with http_client(life) as http:
        card = (await http.get("/.well-known/agent-card.json")).json()
    [extension] = [one for one in card["capabilities"]["extensions"] if one["uri"] == commands.URI]
    return extension["params"]["commands"]


def connected(life: Life, participant: str = "ann") -> AbstractAsyncContextManager[HarnessClient]:
    """Open our own client, as somebody."""
    return connect(Address(life.url, token=life.token), participant)


@pytest.fixture(scope="module")
async def service(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Service]:
    folder = tmp_path_factory.mktemp("deploys")
    async with Service("deploys:app", folder / "log", EXAMPLES) as service:
        yield service


@pytest.fixture(scope="module")
async def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    return Home(tmp_path_factory.mktemp("example") / "home", SCRIPT)


@pytest.fixture(scope="module")
async def life(home: Home, service: Service) -> AsyncGenerator[Life]:
    plugin = home.path.parent / "notes"
    shutil.copytree(EXAMPLES / "plugin-notes", plugin, ignore=shutil.ignore_patterns("__pycache__"))
    [hooks] = plugin.rglob("hooks.json")
    hooks.write_text(hooks.read_text().replace("http://127.0.0.1:8090/rpc", service.url))
    async with home.serving(plugin) as life:
        # Each hook is called once, so that `/status` says the same of them to everybody after.
        await python_client(life, ["hello", "/note", "/deploy staging"])
        yield life


async def test_the_card_lists_all_commands_with_their_hints(life: Life) -> None:
    found = await offers(life)
    assert [offer["name"] for offer in found] == [*BUILT_IN, "note", "deploy"]
    assert found[-2:] == [
        {"name": "note", "description": "Keep a note on this task, or show them", "argument_hint": "[text]"},
        {"name": "deploy", "description": "Deploy the current build", "argument_hint": "<env>"},
    ]


CONVERSATION = {
    "hello": ("1: hello", None),
    "/note buy $(milk)": ("Noted, as number 1.", "done"),
    "/note": ("1. buy $(milk)", "done"),
    "/deploy staging": ("Deployed to staging.", "done"),
    "/deploy mars": ("There is no such environment: /deploy staging|production", "refused"),
    "/nope x": ("2: /nope x", None),
}
"""What is said, and what is answered wherever it is said."""
DATA = (None, {"count": 1}, {"notes": ["buy $(milk)"]}, {"env": "staging"}, None, None)
STATUS = """Task <task>
Name: hello
State: INPUT_REQUIRED (Input required · Your turn)
Model: scripted
Effort: unset
Plan: none
Sub-tasks: none
Hooks:
  notes/note at command.invoked.in: up
  notes/no-codenames at request.received.pre: up
  notes/deploy at command.invoked.in: up"""


@on_every_surface
async def test_every_surface_gets_the_same_answers(life: Life, surface: Surface) -> None:
    told = await surface(life, [*CONVERSATION, "/status", CODENAME])
    *_, status, refused = told.answers
    assert told.plain[:-2] == list(CONVERSATION.values())
    assert (refused.outcome, CODENAME_REASON in refused.words) == ("error", True)
    lines = status.words.replace(told.task_id, "<task>").splitlines()
    assert (status.outcome, [line for line in lines if not line.startswith("Usage: 2 ")]) == (
        "done",
        STATUS.splitlines(),
    )
    if surface is not full_screen:  # which shows people the words alone
        assert tuple(answer.data for answer in told.answers[:-2]) == DATA
        assert (status.data["task_id"], status.data["name"], status.data["model"]) == (
            told.task_id,
            "hello",
            "scripted",
        )
        assert (status.data["state"], status.data["sub_state"]) == (
            "TASK_STATE_INPUT_REQUIRED",
            "awaiting-next-message",
        )
        assert [hook["name"] for hook in status.data["hooks"]] == ["notes/note", "notes/no-codenames", "notes/deploy"]


async def test_only_who_may_know_is_told_how_the_hooks_are(life: Life) -> None:
    async with connected(life) as ann, connected(life, "bob") as bob:
        task = (await ann.send("/invite bob")).task
        answer = (await bob.send("/status", task_id=task.task_id)).command
    assert answer
    assert answer.data
    assert answer.data["task_id"] == task.task_id
    assert "hooks" not in answer.data


async def test_what_a_policy_refused_is_nowhere(life: Life, home: Home) -> None:
    async with connected(life) as client:
        task_id = (await client.send("hello")).task.task_id
        before, tasks = home.snapshot(task_id), home.task_ids()
        for task in (task_id, None):
            with pytest.raises(RefusedByPolicy) as refused:
                await client.send(CODENAME, task_id=task)
            assert refused.value.reason == CODENAME_REASON
        assert [message.text for message in (await client.task(task_id)).messages] == ["hello", "1: hello"]
    assert (home.snapshot(task_id), home.task_ids()) == (before, tasks)


async def test_without_a_policy_commands_change_tasks(life: Life, home: Home) -> None:
    """What the test of the refusing policy relies on."""
    async with connected(life) as client:
        task_id = (await client.send("hello")).task.task_id
        for text in CHANGES:
            before = home.snapshot(task_id)
            answer = (await client.send(text, task_id=task_id)).command
            assert answer
            assert answer.outcome == "done"
            assert home.snapshot(task_id) != before
