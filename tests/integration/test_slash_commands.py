"""What the requirements say about commands, word by word, through a whole harness: gateway, engine and model's wire."""

import io
import logging
from collections.abc import AsyncGenerator
from pathlib import Path

import httpx
import pytest
from a2a.client import ClientConfig, create_client
from a2a.helpers import new_text_message
from a2a.types import Role, SendMessageRequest

import tiny_harness
from tests.e2e.plugin_folder import body, write_plugin
from tests.security.harness import Harness, Json, Person, Said, whole_harness
from tiny_harness import (
    Address,
    CommandContext,
    CommandFailed,
    CommandRegistry,
    CommandResult,
    CreateSubTask,
    Executor,
    ExecutorApp,
    Plugin,
    SetModel,
    call_function,
    connect,
    serving_executors,
)
from tiny_harness.ext import commands, status
from tiny_harness.ext import task as task_ext
from tiny_harness.ext.task import AGENT_ID
from tiny_harness.tui.plain import run_plain

pytestmark = pytest.mark.timeout(120)

PARKED = "TASK_STATE_INPUT_REQUIRED"


def registry() -> CommandRegistry:
    found = CommandRegistry()

    @found.command("fail", argument_hint="<how>", description="Fails as it is told")
    async def fail(context: CommandContext) -> str:
        if context.arguments == "in words":
            raise CommandFailed("there is no such environment: moon")
        raise ZeroDivisionError("a bug in the body")

    @found.command("split", description="Chooses a model and starts a sub-task at once")
    async def split(_context: CommandContext) -> CommandResult:
        return CommandResult(reply="split", effects=(SetModel(model="big"), CreateSubTask(goal="half")))

    @found.command("twin", argument_hint="<words>", description="Says it twice")
    def twin(context: CommandContext) -> str:
        return f"{context.arguments} {context.arguments}"

    assert None not in (fail, split, twin)
    return found


@pytest.fixture(scope="module")
async def harness(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Harness]:
    async with whole_harness(tmp_path_factory.mktemp("harness"), commands=registry()) as harness:
        yield harness


@pytest.fixture
def ann(harness: Harness) -> Person:
    return harness.person("ann")


@pytest.fixture
async def task_id(ann: Person) -> str:
    """A parked task of Ann's."""
    return (await ann.say("hello")).task_id


def data_of(task: Json) -> Json:
    return task["metadata"][task_ext.KEY]


async def test_every_client_gets_the_same_reply_from_the_same_text(harness: Harness, ann: Person) -> None:
    """R6.4, on both bindings, by the official client, ours, and the line mode of the terminal."""
    text, replies = "/model huge", list[str]()
    for binding in ("JSONRPC", "HTTP+JSON"):
        async with httpx.AsyncClient(headers=ann.headers) as http:
            config = ClientConfig(httpx_client=http, supported_protocol_bindings=[binding])
            async with await create_client(harness.url, config) as client:
                request = SendMessageRequest(message=new_text_message(text, role=Role.ROLE_USER))
                events = [event async for event in client.send_message(request)]
        replies.append(events[-1].status_update.status.message.parts[0].text)
    async with connect(Address(harness.url, token=harness.token), "ann") as client:
        result = await client.send(text)
    replies.append(result.reply)
    assert result.command is not None
    assert (result.command.name, result.command.outcome) == ("model", "refused")
    out = io.StringIO()
    address = Address(harness.url, token=harness.token)
    assert await run_plain(address, "ann", io.StringIO(f"{text}\n"), out) == 1
    assert set(replies) == {"There is no such model to choose. You can choose: small, big. It stays small."}
    assert replies[0] in out.getvalue()


@pytest.mark.parametrize(
    ("how", "words", "outcome"),
    [("in words", "there is no such environment: moon", "refused"), ("otherwise", "a bug in the body", "failed")],
)
async def test_a_handler_that_raises_is_answered_in_its_words_and_logged_and_the_task_stays(
    ann: Person, task_id: str, how: str, words: str, outcome: str, caplog: pytest.LogCaptureFixture
) -> None:
    """R6.6."""
    before = await ann.task(task_id)
    with caplog.at_level(logging.INFO):
        said = await ann.say(f"/fail {how}", task_id)
    assert said.outcome == outcome
    assert words in said.words
    after = await ann.task(task_id)
    assert (after["status"]["state"], after["metadata"][status.KEY]) == (
        before["status"]["state"],
        before["metadata"][status.KEY],
    )
    assert data_of(after) == data_of(before)
    logged = [record.getMessage() for record in caplog.records if record.levelno >= logging.INFO]
    assert any(words in line for line in logged)
    assert any(f"command /fail on task {task_id}: {outcome}" in line for line in logged)


async def test_a_run_of_a_command_is_logged_with_name_task_and_outcome_and_not_its_arguments(
    ann: Person, task_id: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Non-functional: observability."""
    with caplog.at_level(logging.DEBUG):
        await ann.say("/twin secret-words-9d", task_id)
    assert f"command /twin on task {task_id}: done" in caplog.text
    ours = [record.getMessage() for record in caplog.records if record.name.startswith("tiny_harness")]
    assert not [line for line in ours if "secret-words-9d" in line]


async def test_clients_are_told_the_commands_with_description_and_hint(ann: Person) -> None:
    """R6.7."""
    card = (await ann.get("/.well-known/agent-card.json")).json()
    [params] = [one["params"] for one in card["capabilities"]["extensions"] if one["uri"] == commands.URI]
    told = {one["name"]: one for one in params["commands"]}
    assert set(told) == {"model", "effort", "sub-task", "status", "invite", "help", "fail", "split", "twin"}
    assert told["fail"] == {"name": "fail", "description": "Fails as it is told", "argument_hint": "<how>"}


async def test_a_chosen_model_is_in_the_tasks_metadata_and_asked_by_its_new_sub_tasks(
    harness: Harness, ann: Person, task_id: str
) -> None:
    """R7.3, R7.5."""
    assert harness.model.bodies[-1].startswith(b'{"model":"small"'), "without a choice the configured one"
    assert (await ann.say("/model big", task_id)).words == "The model is now big."
    assert data_of(await ann.task(task_id))["model"] == "big"
    await ann.say("go on", task_id)
    assert harness.model.bodies[-1].startswith(b'{"model":"big"')
    child_id = (await ann.say("/sub-task look", task_id)).data["task_id"]
    assert data_of(await ann.task(child_id))["model"] == "big"
    await ann.say("begin", child_id)
    assert harness.model.bodies[-1].startswith(b'{"model":"big"')
    await ann.say("/model small", task_id)
    await ann.say("again", child_id)
    assert harness.model.bodies[-1].startswith(b'{"model":"big"'), "new sub-tasks inherit, not those that are there"


async def test_a_sub_task_inherits_what_the_same_command_chose(ann: Person, task_id: str) -> None:
    """R7.3."""
    assert (await ann.say("/split", task_id)).outcome == "done"
    parent = data_of(await ann.task(task_id))
    child = await ann.task(parent["sub_tasks"][0]["task_id"])
    assert (parent["model"], data_of(child)["model"]) == ("big", "big")


async def test_a_sub_task_is_all_that_its_command_promises(ann: Person, harness: Harness, task_id: str) -> None:
    """R9.1, R9.2: by somebody who is not the parent's reporter."""
    await ann.say("/invite bob", task_id)
    bob, goal = harness.person("bob"), "look at the logs\nof last night"
    before = await ann.task(task_id)
    said = await bob.say(f"/sub-task {goal}", task_id)
    child_id = said.data["task_id"]
    assert child_id in said.words
    parent, child = await ann.task(task_id), await bob.task(child_id)
    assert child["contextId"] == parent["contextId"]
    assert data_of(child)["parent_tasks"] == [task_id]
    row = {"task_id": child_id, "state": PARKED, "sub_state": "awaiting-next-message"}
    assert data_of(parent)["sub_tasks"] == [row]
    assert data_of(child)["goal"] == goal
    people = {person["id"]: person["role"] for person in data_of(child)["participants"]}
    assert people == {"bob": "reporter", AGENT_ID: "assignee"}
    assert (child["status"]["state"], child["metadata"][status.KEY]["sub_state"]) == (PARKED, "awaiting-next-message")
    assert data_of(child)["lifecycle"] == "conversation"
    assert parent["status"]["state"] == before["status"]["state"]
    for text in ("begin", "go on"):
        await bob.say(text, child_id)
        assert (await bob.task(child_id))["status"]["state"] == PARKED
    done = await bob.control("complete", child_id)
    assert done.error is None
    assert (await bob.task(child_id))["status"]["state"] == "TASK_STATE_COMPLETED"
    await ann.until(task_id, lambda facts: facts["metadata"]["sub_tasks"][0]["state"] == "TASK_STATE_COMPLETED")
    assert (await ann.say("/sub-task", task_id)).words == "Say what the sub-task is about: /sub-task <description>"


async def test_complete_names_the_open_sub_tasks_in_its_refusal(ann: Person, task_id: str) -> None:
    """R5.4."""
    child_id = (await ann.say("/sub-task look", task_id)).data["task_id"]
    before = await ann.facts(task_id)
    refused = await ann.control("complete", task_id)
    assert refused.refusal == "unresolved_sub_tasks"
    assert child_id in str(refused.error)
    assert await ann.facts(task_id) == before
    await ann.cancel(child_id)
    assert (await ann.control("complete", task_id)).error is None


async def test_status_tells_all_that_it_must_and_asks_no_model(harness: Harness, ann: Person) -> None:
    """R10.1, R10.2."""
    envelope = {"kind": "task", "payload": {"name": "A trip", "goal": "to the sea"}}
    part = {"data": envelope, "mediaType": "application/vnd.tiny-harness.event+json"}
    task_id = (await ann.send([part, {"text": "hello"}])).task_id
    await ann.say("/model big", task_id)
    await ann.say("/effort low", task_id)
    child_id = (await ann.say("/sub-task look", task_id)).data["task_id"]
    before, calls = await ann.facts(task_id), len(harness.model.bodies)
    said = await ann.say("/status", task_id)
    assert await ann.facts(task_id) == before
    assert len(harness.model.bodies) == calls
    usage = said.data.pop("usage")
    assert usage["calls"] == 1
    assert usage["input_tokens"] > 0
    told = said.data
    told.pop("hooks")
    assert told == {
        "task_id": task_id,
        "name": "A trip",
        "state": PARKED,
        "sub_state": "awaiting-next-message",
        "model": "big",
        "effort": "low",
        "plan": {"done": 0, "total": 0},
        "sub_tasks": [{"task_id": child_id, "state": PARKED, "sub_state": "awaiting-next-message"}],
    }
    for word in (task_id, "A trip", "INPUT_REQUIRED", "Model: big", "Effort: low", "Plan: none", child_id, "1 calls"):
        assert word in said.words


async def test_all_phases_are_shown_name_arguments_task_and_sender(tmp_path: Path) -> None:
    """R6a.1, R6a.2, R6a.4, R6a.5: for a built-in, too."""
    seen: list[Json] = []

    def look(phase: str, patch: Json | None = None) -> Executor:
        async def call(context: CommandContext) -> Json | None:
            told = {"phase": context.phase, "command": context.command, "arguments": context.arguments}
            told |= {"task": context.task.task_id, "state": context.task.state}
            seen.append({**told, "sender": context.sender.model_dump() if context.sender else None})
            return patch

        return Executor(f"look/{phase}", "command.invoked", phase, call_function(call), priority=10)  # pyright: ignore[reportArgumentType]

    phases = (look("pre", {"arguments": "big"}), look("in"), look("post", {"result": {"reply": "so be it"}}))
    async with whole_harness(tmp_path, plugins=[Plugin("look", executors=phases)]) as harness:
        ann = harness.person("ann")
        task_id = (await ann.say("hello")).task_id
        said = await ann.say("/model huge", task_id)
        assert (said.outcome, said.words) == ("done", "so be it")
        assert data_of(await ann.task(task_id))["model"] == "big"
    common = {"command": "model", "task": task_id, "state": PARKED}
    sender = {"id": "ann", "kind": "human", "role": "reporter"}
    assert seen == [
        {"phase": "pre", "arguments": "huge", **common, "sender": sender},
        {"phase": "in", "arguments": "big", **common, "sender": sender},
        {"phase": "post", "arguments": "big", **common, "sender": sender},
    ]


TWIN = """
def twin(context):
    return f"{context.arguments} {context.arguments}"
"""


NAMES = ("twin", "twin-here", "twin-rpc", "twin-mcp")


async def test_bodies_in_a_plugins_folder_run_here_and_elsewhere_like_one_from_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R6a.6, R6a.7: one handler, four ways to bring it."""
    monkeypatch.setenv("TINY_HARNESS_HOOK_SECRET_TWINS", "a secret of the test, long enough")
    app = ExecutorApp("twins")
    for name in ("twin-rpc", "twin-mcp"):
        app.command(name, argument_hint="<words>", description="Says it twice")(
            lambda context: f"{context.arguments} {context.arguments}"
        )
    async with serving_executors(app, "127.0.0.1:0") as url:
        folder = write_plugin(
            tmp_path / "twins",
            commands=[{"name": name, "description": "Says it twice", "argument_hint": "<words>"} for name in NAMES[1:]],
            executors=[
                body("twin-here", "hooks.py:twin"),
                body("twin-rpc", url),
                body("twin-mcp", url.replace("/rpc", "/mcp"), transport="mcp"),
            ],
            code=TWIN,
        )
        async with whole_harness(tmp_path, folders=[folder], commands=registry()) as harness:
            ann = harness.person("ann")
            task_id = (await ann.say("hello")).task_id
            said = {name: await ann.say(f"/{name} hey ho", task_id) for name in NAMES}
            assert {shown(one) for one in said.values()} == {("done", "hey ho hey ho", PARKED)}
            card = (await ann.get("/.well-known/agent-card.json")).json()
            [params] = [one["params"] for one in card["capabilities"]["extensions"] if one["uri"] == commands.URI]
            offers = [one for one in params["commands"] if one["name"] in NAMES]
            assert [one["name"] for one in offers] == list(NAMES)
            assert {(one["description"], one["argument_hint"]) for one in offers} == {("Says it twice", "<words>")}


def shown(said: Said) -> tuple[str, str, str]:
    return said.outcome, said.words, said.events[-1]["statusUpdate"]["status"]["state"]


async def test_what_a_program_needs_for_commands_and_completion_is_public(tmp_path: Path) -> None:
    """R11.3, R6.8: with nothing but `import tiny_harness`, and one built-in of its choice instead of all."""
    own = tiny_harness.CommandRegistry()
    own.register("greet", "Greet somebody", "<name>", lambda context: f"hello, {context.arguments}")
    status_alone = Plugin(
        "some-of-them",
        commands=tuple(spec for spec in tiny_harness.BUILTIN_COMMANDS if spec.name == "status"),
        executors=tuple(body for body in tiny_harness.builtin_executors() if body.command == "status"),
    )
    settings = tiny_harness.Settings.model_validate(
        {"store": {"sqlite_path": tmp_path / "store.db"}, "model": {"provider": "scripted"}}
    )
    async with (
        tiny_harness.running_harness(settings, commands=own, plugins=[status_alone], builtin_commands=False) as harness,
        tiny_harness.connect(harness.address, "ann") as client,
    ):
        greeted = await client.send("/greet Ada")
        task_id = greeted.task.task_id
        assert greeted.reply == "hello, Ada"
        assert greeted.task.sub_state == tiny_harness.AWAITING_NEXT_MESSAGE != tiny_harness.AWAITING_ANSWER
        assert task_id in (await client.send("/status", task_id=task_id)).reply
        assert (await client.send("/model big", task_id=task_id)).command is None
        assert (await client.complete(task_id)).state is tiny_harness.TaskState.COMPLETED
