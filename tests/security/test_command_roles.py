"""Abuse cases 3 and 4: who may run which command, complete, interrupt and cancel, through a real gateway and engine.

Generated from two lists, everything that acts on a task and everybody who may try, and the table of DESIGN section 9.
"""

from collections.abc import AsyncGenerator
from typing import Any, Final

import pytest

from tests.security.harness import Harness, Person, Said, whole_harness
from tiny_harness.commands import AddParticipant, CommandRegistry, CommandResult, CreateSubTask, SetEffort, SetModel
from tiny_harness.envelope import MEDIA_TYPE, control_part
from tiny_harness.ext.commands import URI
from tiny_harness.hooks.contexts import CommandContext

pytestmark = pytest.mark.timeout(120)

PEOPLE: Final = {"ada": "admin", "ann": "reporter", "al": "assignee", "wanda": "watcher"}
WHO: Final = (*PEOPLE, "eve", "nobody")
"""And a stranger, and somebody without a credential."""

EVERYBODY: Final = frozenset(PEOPLE)
TAKE_PART: Final = frozenset({"ada", "ann", "al"})
IN_CHARGE: Final = frozenset({"ada", "ann"})

MAY: Final[dict[str, frozenset[str]]] = {
    "/status": EVERYBODY,
    "/help": EVERYBODY,
    "/model": TAKE_PART,
    "/model big": TAKE_PART,
    "/effort": TAKE_PART,
    "/effort high": TAKE_PART,
    "/sub-task look": TAKE_PART,
    "/invite friend": IN_CHARGE,
    "/invite friend admin": IN_CHARGE,
    "/deploy now": TAKE_PART,  # a command of somebody else's that says nothing
    "/look": EVERYBODY,
    "/steer": TAKE_PART,
    "/appoint": IN_CHARGE,
    "/want-model": TAKE_PART,
    "/want-effort": TAKE_PART,
    "/want-sub-task": TAKE_PART,
    "/want-participant": IN_CHARGE,
    "complete": TAKE_PART,
    "interrupt": TAKE_PART,
    "cancel": TAKE_PART,
    "words": TAKE_PART,
    "participants": IN_CHARGE,
}
"""What DESIGN section 9 says."""

WANTS: Final[dict[str, Any]] = {
    "want-model": SetModel(model="big"),
    "want-effort": SetEffort(effort="high"),
    "want-sub-task": CreateSubTask(goal="look"),
    "want-participant": AddParticipant(id="friend", role="assignee"),
}
"""Commands that everybody may run, whose bodies want what not everybody may have."""

BEYOND: Final[dict[str, tuple[Any, ...]]] = {
    "beyond-model": (SetModel(model="huge"),),
    "beyond-effort": (SetEffort(effort="maximum"),),
    "beyond-one": (CreateSubTask(goal="one"), CreateSubTask(goal="two")),
    "beyond-half": (SetEffort(effort="high"), SetModel(model="huge")),
}
"""What the configuration allows nobody."""


def registry() -> CommandRegistry:
    commands = CommandRegistry()

    def wants(*effects: Any) -> Any:
        async def body(context: CommandContext) -> CommandResult:
            return CommandResult(reply=f"{context.command} is done", effects=effects)

        return body

    commands.register("deploy", "", "", lambda _context: "deployed")
    commands.register("look", "", "", lambda _context: "seen", act="read the task")
    commands.register("steer", "", "", lambda _context: "steered", act="control the task")
    commands.register("appoint", "", "", lambda _context: "appointed", act="change participants")
    for name, effect in WANTS.items():
        commands.register(name, "", "", wants(effect), act="read the task")
    for name, effects in BEYOND.items():
        commands.register(name, "", "", wants(*effects), act="read the task")

    async def lie(_context: CommandContext) -> CommandResult:
        return CommandResult(reply="The task is completed. Its state is TASK_STATE_COMPLETED.", data={"state": "x"})

    commands.register("lie", "", "", lie, act="read the task")
    return commands


@pytest.fixture(scope="module")
async def harness(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Harness]:
    async with whole_harness(tmp_path_factory.mktemp("harness"), commands=registry()) as harness:
        yield harness


@pytest.fixture
async def task_id(harness: Harness) -> str:
    """A parked task of Ann's, with one person in each role."""
    others = [{"id": name, "role": role} for name, role in PEOPLE.items() if name != "ann"]
    return (await harness.person("ann").send([envelope({"participants": others}), {"text": "hello"}])).task_id


def envelope(payload: dict[str, Any]) -> dict[str, Any]:
    return {"data": {"kind": "task", "payload": payload}, "mediaType": MEDIA_TYPE}


def caller(harness: Harness, name: str) -> Person:
    return harness.nobody() if name == "nobody" else harness.person(name)


async def act(person: Person, what: str, task_id: str) -> Said:
    """Do one thing of the table."""
    match what:
        case "complete" | "interrupt":
            return await person.send([control_part(what)], task_id)
        case "cancel":
            return await person.cancel(task_id)
        case "words":
            return await person.say("psst", task_id)
        case "participants":
            return await person.send([envelope({"participants": [{"id": "friend", "role": "watcher"}]})], task_id)
        case _:
            return await person.say(what, task_id)


async def test_every_command_is_in_the_table(harness: Harness) -> None:
    card = (await harness.person("ann").get("/.well-known/agent-card.json")).json()
    [params] = [one["params"] for one in card["capabilities"]["extensions"] if one["uri"] == URI]
    names = {f"/{command['name']}" for command in params["commands"]}
    assert names - {"/lie", *(f"/{name}" for name in BEYOND)} == {what.split()[0] for what in MAY if what[0] == "/"}


@pytest.mark.parametrize("who", WHO)
@pytest.mark.parametrize("what", MAY)
async def test_the_table(harness: Harness, task_id: str, what: str, who: str) -> None:
    ann = harness.person("ann")
    before, calls = await ann.facts(task_id), len(harness.model.bodies)
    said = await act(caller(harness, who), what, task_id)
    if who in MAY[what]:
        assert said.error is None
        if what.startswith("/"):
            assert said.outcome == "done"
        return
    assert await ann.facts(task_id) == before
    assert len(harness.model.bodies) == calls
    history = [message["parts"][0].get("text") for message in (await ann.task(task_id))["history"]]
    if who == "nobody":
        assert said.status == 401
        assert what not in history
    elif who == "eve":
        missing = await act(caller(harness, who), what, "missing")
        assert said.refusal == missing.refusal == "TASK_NOT_FOUND"
        assert str(said.error).replace(task_id, "missing") == str(missing.error)
        assert what not in history
    elif what.startswith("/"):
        assert said.outcome == "refused", "a refusal by role is a reply on the task"
        assert PEOPLE[who] in said.words
    else:
        assert said.refusal == "role_not_permitted"


@pytest.mark.parametrize("name", BEYOND)
async def test_what_the_configuration_does_not_allow_no_body_may_do_for_anybody(
    harness: Harness, task_id: str, name: str
) -> None:
    ada = harness.person("ada")
    before = await ada.facts(task_id)
    said = await ada.say(f"/{name}", task_id)
    assert said.outcome == "refused"
    assert await ada.facts(task_id) == before


async def test_a_reply_that_says_what_became_of_the_task_changes_nothing(harness: Harness, task_id: str) -> None:
    ann = harness.person("ann")
    before = await ann.facts(task_id)
    said = await ann.say("/lie", task_id)
    assert (said.outcome, said.words.split(".")[0]) == ("done", "The task is completed")
    assert await ann.facts(task_id) == before


async def test_a_watcher_completes_nothing_with_words_that_look_like_a_control(harness: Harness, task_id: str) -> None:
    wanda, ann = harness.person("wanda"), harness.person("ann")
    before = await ann.facts(task_id)
    for text in ("/complete", "/cancel", "/unknown"):
        assert (await wanda.say(text, task_id)).refusal == "role_not_permitted"
    assert await ann.facts(task_id) == before


async def test_nobody_gives_themselves_another_role_in_what_they_send(harness: Harness, task_id: str) -> None:
    ann = harness.person("ann")
    before = await ann.facts(task_id)
    claims = {"sender": {"id": "ann", "role": "admin"}, "role": "admin"}
    said = await harness.person("wanda").say("/model big", task_id, metadata={"io.github.x": claims, **claims})
    assert said.outcome == "refused"
    assert await ann.facts(task_id) == before


async def test_a_stranger_starts_no_command_on_a_task_by_its_context(harness: Harness, task_id: str) -> None:
    ann, eve = harness.person("ann"), harness.person("eve")
    before = await ann.facts(task_id)
    context_id = (await ann.task(task_id))["contextId"]
    said = await eve.say("/sub-task look", contextId=context_id)
    assert said.task_id != task_id
    assert (await eve.task(said.task_id))["contextId"] != context_id
    assert await ann.facts(task_id) == before
