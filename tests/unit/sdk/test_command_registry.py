"""The registry that code fills (R6.1, R6.5, R6a.7)."""

import pytest
from pydantic import ValidationError

from tiny_harness.commands.registry import CommandRegistry, command_executor
from tiny_harness.effects import CommandResult, SetModel
from tiny_harness.errors import CommandFailed, RegistryError
from tiny_harness.hooks import Hooks, Outcome
from tiny_harness.hooks.contexts import CommandContext, TaskRef

CONTEXT = CommandContext(
    operation="command.invoked",
    phase="in",
    task=TaskRef(task_id="t1", context_id="c1", state="TASK_STATE_INPUT_REQUIRED"),
    correlation_id="k1",
    command="deploy",
    arguments="prod",
)


async def run(registry: CommandRegistry, context: CommandContext = CONTEXT) -> Outcome[CommandContext]:
    return await Hooks(registry.executors).run(context)


@pytest.mark.parametrize("name", ["a", "deploy", "sub-task", "x1", "a-", "a--b", "a" * 64])
def test_a_valid_name_is_taken(name: str) -> None:
    registry = CommandRegistry()
    registry.register(name, "", "", lambda _context: "ok")
    assert [spec.name for spec in registry.specs] == [name]
    assert [(one.point, one.command) for one in registry.executors] == [("command.invoked.in", name)]


@pytest.mark.parametrize(
    "name",
    ["", "Deploy", "1a", "-a", "a_b", "a b", "/a", "a/b", "ä", "a\n", "\na", "a.b", "ａ", "a" * 65, "a\u202e", "a\0"],
)
def test_an_invalid_name_raises_and_leaves_nothing(name: str) -> None:
    registry = CommandRegistry()
    with pytest.raises(RegistryError) as caught:
        registry.register(name, "", "", lambda _context: "ok")
    assert (caught.value.kind, caught.value.name) == ("command", name)
    assert (registry.specs, registry.executors) == ((), ())


def test_a_taken_name_raises_and_the_first_stays() -> None:
    registry = CommandRegistry()
    registry.register("deploy", "the first", "<env>", lambda _context: "1")
    with pytest.raises(RegistryError):
        registry.register("deploy", "the second", "", lambda _context: "2")
    assert [spec.description for spec in registry.specs] == ["the first"]
    assert len(registry.executors) == 1


def test_a_description_that_is_too_long_leaves_nothing() -> None:
    registry = CommandRegistry()
    with pytest.raises(ValidationError):
        registry.register("deploy", "x" * 201, "", lambda _context: "1")
    assert (registry.specs, registry.executors) == ((), ())


async def test_a_decorated_function_stays_itself_and_answers() -> None:
    registry = CommandRegistry()

    @registry.command("deploy", argument_hint="<env>", description="Deploy", act="control the task")
    def deploy(context: CommandContext) -> str:
        return f"to {context.arguments}"

    assert deploy(CONTEXT) == "to prod"
    [spec] = registry.specs
    assert (spec.argument_hint, spec.description, spec.act) == ("<env>", "Deploy", "control the task")
    assert (await run(registry)).context.result == CommandResult(reply="to prod")


async def test_a_body_may_answer_a_whole_result() -> None:
    registry = CommandRegistry()
    wanted = CommandResult(reply="done", data={"n": 1}, effects=(SetModel(model="big"),))

    @registry.command("deploy")
    async def deploy(_context: CommandContext) -> CommandResult:
        return wanted

    assert deploy is not None
    assert (await run(registry)).context.result == wanted


async def test_a_body_that_answers_nothing_has_set_nothing() -> None:
    registry = CommandRegistry()
    registry.register("deploy", "", "", lambda _context: None)
    assert (await run(registry)).context.result is None


@pytest.mark.parametrize("answer", [5, b"bytes", "", {"reply": ""}, {"words": "x"}, ["x"], "x" * 32_001])
async def test_a_body_that_answers_something_else_fails(answer: object) -> None:
    registry = CommandRegistry()
    registry.register("deploy", "", "", lambda _context: answer)
    outcome = await run(registry)
    assert outcome.failure is not None
    assert outcome.context.result is None


async def test_a_body_says_no_in_its_own_words() -> None:
    registry = CommandRegistry()

    @registry.command("deploy")
    def deploy(_context: CommandContext) -> str:
        raise CommandFailed("the build is red")

    assert deploy is not None
    outcome = await run(registry)
    assert outcome.failure is None
    assert outcome.context.result == CommandResult(reply="the build is red", outcome="refused")


async def test_a_body_of_a_lower_priority_replaces_a_registered_one() -> None:
    registry = CommandRegistry()
    registry.register("deploy", "", "", lambda _context: "default")
    other = command_executor("deploy", lambda _context: "other", executor="other", priority=500)
    outcome = await Hooks((*registry.executors, other)).run(CONTEXT)
    assert outcome.context.result == CommandResult(reply="other")
