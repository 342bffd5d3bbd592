"""What an executor app answers, whichever way it is asked: one executor's trouble is its own."""

import asyncio
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.hooks.samples import command_context, observed_context
from tiny_harness.effects import CommandResult
from tiny_harness.errors import CommandFailed, HookAbort, RegistryError
from tiny_harness.executors import ExecutorApp
from tiny_harness.executors.answers import Aborted, Answer, Failed, Invalid, Patched, Unknown
from tiny_harness.executors.switchboard import Caller, Switchboard
from tiny_harness.hooks.contexts import CommandContext
from tiny_harness.hooks.executor import Executor

IN, PRE, POST = "command.invoked.in", "command.invoked.pre", "command.invoked.post"


async def ask(app: ExecutorApp, point: str, context: Any, caller: Caller | None = None) -> Answer:
    board = Switchboard(app.name, app.executors, app.commands)
    async with asyncio.timeout(30):
        return await board.answer(point, context, caller)


def app_with(body: Callable[[CommandContext], Any], *, deadline_s: float = 5.0) -> ExecutorApp:
    app = ExecutorApp("deploys")
    app.command("deploy", deadline_s=deadline_s)(body)
    return app


async def test_a_body_answers_a_result_or_just_text() -> None:
    async def result(context: CommandContext) -> CommandResult:
        return CommandResult(reply=f"to {context.arguments}", data={"n": 1})

    answer = await ask(app_with(result), IN, command_context())
    assert isinstance(answer, Patched)
    assert answer.patch == {"result": {"reply": "to staging", "data": {"n": 1}, "effects": [], "outcome": "done"}}
    answer = await ask(app_with(lambda context: "text"), IN, command_context())
    assert isinstance(answer, Patched)
    assert answer.patch is not None
    assert answer.patch["result"]["reply"] == "text"


async def test_a_plain_body_runs_in_a_thread_of_its_own() -> None:
    answer = await ask(app_with(lambda context: threading.current_thread().name), IN, command_context())
    assert isinstance(answer, Patched)
    assert answer.patch is not None
    assert answer.patch["result"]["reply"] != threading.current_thread().name


def _raise(error: BaseException) -> Any:
    raise error


BROKEN: dict[str, Callable[[CommandContext], Any]] = {
    "raises": lambda context: _raise(ValueError("a secret")),
    "exits": lambda context: sys.exit("a secret"),
    "answers a number": lambda context: 7,
    "answers what is no JSON": lambda context: CommandResult(reply="x", data={"x": object()}),
    "answers half a letter": lambda context: CommandResult(reply="x", data={"x": "\ud800"}),
    "answers 10 MB": lambda context: CommandResult(reply="x", data={"x": "x" * 10_000_000}),
    "answers a reply of 10 MB": lambda context: "x" * 10_000_000,
    "answers nothing": lambda context: "",
    "refuses where it may not": lambda context: _raise(HookAbort("a secret")),
}


@pytest.mark.parametrize("name", BROKEN)
async def test_a_broken_body_fails_alone_and_tells_nothing(name: str) -> None:
    app = app_with(BROKEN[name])
    app.command("status")(lambda context: "fine")
    assert await ask(app, IN, command_context()) == Failed("corr-1")
    assert isinstance(await ask(app, IN, command_context("status")), Patched)


@pytest.mark.parametrize("error", [ValueError("x"), SystemExit(3), asyncio.CancelledError()], ids=repr)
async def test_a_broken_async_body_fails_alone(error: BaseException) -> None:
    async def body(context: CommandContext) -> None:
        raise error

    assert await ask(app_with(body), IN, command_context()) == Failed("corr-1")


async def test_a_body_that_hangs_fails_at_its_deadline() -> None:
    async def body(context: CommandContext) -> None:
        await asyncio.Event().wait()

    assert await ask(app_with(body, deadline_s=0.05), IN, command_context()) == Failed("corr-1")


async def test_a_body_that_will_not_be_cancelled_is_left_behind() -> None:
    may_end = asyncio.Event()

    async def body(context: CommandContext) -> str:
        while not may_end.is_set():
            try:
                await may_end.wait()
            except asyncio.CancelledError:
                continue
        return "late"

    try:
        assert await ask(app_with(body, deadline_s=0.05), IN, command_context()) == Failed("corr-1")
    finally:
        may_end.set()


async def test_plain_functions_that_hang_starve_no_other() -> None:
    may_end = threading.Event()
    app = app_with(lambda context: may_end.wait(60), deadline_s=0.2)
    app.command("status")(lambda context: "fine")
    board = Switchboard(app.name, app.executors, app.commands)
    try:
        async with asyncio.timeout(60):
            hung = [board.answer(IN, command_context(), None) for _ in range(20)]
            assert set(await asyncio.gather(*hung)) == {Failed("corr-1")}
            assert isinstance(await board.answer(IN, command_context("status"), None), Patched)
    finally:
        may_end.set()


async def test_a_failed_commands_own_words_are_a_refusal_in_them() -> None:
    answer = await ask(app_with(lambda context: _raise(CommandFailed("no such env"))), IN, command_context())
    assert isinstance(answer, Patched)
    assert answer.patch is not None
    assert (answer.patch["result"]["reply"], answer.patch["result"]["outcome"]) == ("no such env", "refused")


async def test_hooks_of_a_phase_run_by_priority_and_see_what_others_replaced() -> None:
    app = ExecutorApp("deploys")
    app.hook(PRE, name="late", priority=20)(lambda context: {"arguments": context.arguments + " late"})
    app.hook(PRE, name="early", priority=10)(lambda context: {"arguments": context.arguments + " early"})
    app.hook(PRE, name="other", command="other")(lambda context: {"arguments": "never"})
    answer = await ask(app, PRE, command_context(phase="pre"))
    assert isinstance(answer, Patched)
    assert answer.patch == {"arguments": "staging early late"}


async def test_a_hook_that_has_nothing_to_say_answers_null() -> None:
    app = ExecutorApp("deploys")
    app.hook(PRE)(lambda context: None)
    assert await ask(app, PRE, command_context(phase="pre")) == Patched(None)


async def test_an_abort_stops_the_later_hooks() -> None:
    app, called = ExecutorApp("deploys"), list[str]()
    app.hook(PRE, name="guard", priority=1)(lambda context: _raise(HookAbort("not on Fridays")))
    app.hook(PRE, name="later", priority=2)(lambda context: called.append("later"))
    assert await ask(app, PRE, command_context(phase="pre")) == Aborted("not on Fridays")
    assert called == []


@pytest.mark.parametrize(
    "patch", [{"command": "x"}, {"task": {}}, {"sender": None}, {"arguments": 7}, [], "x"], ids=str
)
async def test_a_hook_may_replace_only_what_its_point_says(patch: Any) -> None:
    app = ExecutorApp("deploys")
    app.hook(PRE)(lambda context: patch or 7)
    assert await ask(app, PRE, command_context(phase="pre")) == Failed("corr-1")


async def test_an_open_hook_that_fails_is_done_without() -> None:
    app = ExecutorApp("deploys")
    app.hook(PRE, name="watcher", on_failure="open", priority=1)(lambda context: _raise(ValueError("x")))
    app.hook(PRE, name="editor", priority=2)(lambda context: {"arguments": "new"})
    answer = await ask(app, PRE, command_context(phase="pre"))
    assert isinstance(answer, Patched)
    assert answer.patch == {"arguments": "new"}


async def test_a_post_hook_changes_part_of_a_result() -> None:
    app = ExecutorApp("deploys")
    app.hook(POST)(lambda context: {"result": {"reply": "shorter"}})
    context = command_context(phase="post", result={"reply": "a long one", "data": {"n": 1}})
    answer = await ask(app, POST, context)
    assert isinstance(answer, Patched)
    assert answer.patch is not None
    assert (answer.patch["result"]["reply"], answer.patch["result"]["data"]) == ("shorter", {"n": 1})


async def test_an_observer_that_fails_keeps_nothing_from_the_others() -> None:
    app, seen = ExecutorApp("deploys"), list[int]()
    app.hook("state.changed.post", name="broken", priority=1)(lambda context: _raise(ValueError("x")))
    app.hook("state.changed.post", name="log", priority=2)(lambda context: seen.append(context.seq))
    assert await ask(app, "state.changed.post", observed_context()) == Failed("corr-1")
    assert seen == [3]


async def test_an_executor_sees_the_delivery_of_the_wire() -> None:
    seen = list[tuple[str, int]]()
    app = app_with(lambda context: seen.append((context.delivery_id, context.attempt)) or "done")
    await ask(app, IN, command_context(delivery_id="inner"), Caller("deploys", "d-9", 2))
    assert seen == [("d-9", 2)]


async def test_a_delivery_without_an_id_is_never_a_repetition() -> None:
    seen = list[str]()
    app = app_with(lambda context: seen.append("x") or "done")
    board = Switchboard(app.name, app.executors, app.commands)
    for delivery_id in ("", "", "d-1", "d-1"):
        await board.answer(IN, command_context(delivery_id=delivery_id), None)
    assert len(seen) == 3


@pytest.mark.parametrize("point", ["", "command.invoked", "command.invoked.post", "task.created.pre", "__init__"])
async def test_a_point_that_is_not_served_is_unknown(point: str) -> None:
    assert await ask(app_with(lambda context: "x"), point, command_context()) == Unknown()


async def test_a_command_without_a_body_here_is_unknown() -> None:
    assert await ask(app_with(lambda context: "x"), IN, command_context("other")) == Unknown()


@pytest.mark.parametrize(
    "document",
    [
        None,
        [],
        {},
        command_context(task=None),
        command_context(arguments=7),
        command_context(phase="pre"),
        command_context(operation="task.created"),
    ],
    ids=lambda document: str(document)[:40],
)
async def test_a_malformed_context_is_invalid(document: Any) -> None:
    assert isinstance(await ask(app_with(lambda context: "x"), IN, document), Invalid)


async def test_a_correlation_id_that_is_none_is_replaced() -> None:
    answer = await ask(app_with(BROKEN["raises"]), IN, command_context(correlation_id="x\n" * 100))
    assert isinstance(answer, Failed)
    assert answer.correlation_id.isprintable()


def test_health_lists_points_and_commands() -> None:
    app = ExecutorApp("deploys")
    app.command("deploy", argument_hint="<env>", description="Deploy")(lambda context: "x")
    app.hook(PRE)(lambda context: None)
    app.hook(IN, name="other", command="status", priority=500)(lambda context: None)
    assert Switchboard(app.name, app.executors, app.commands).health() == {
        "name": "deploys",
        "points": [PRE, IN],
        "commands": [
            {"name": "deploy", "description": "Deploy", "argument_hint": "<env>"},
            {"name": "status", "description": "", "argument_hint": ""},
        ],
    }


@pytest.mark.parametrize("name", ["", "Deploys", "-x", "x" * 65, "a b", "a/b"])
def test_an_app_needs_a_name_that_can_be_a_keys(name: str) -> None:
    with pytest.raises(RegistryError):
        ExecutorApp(name)


def test_what_cannot_be_registered_is_refused() -> None:
    app = app_with(lambda context: "x")

    def guard(context: CommandContext) -> None: ...

    app.hook(PRE)(guard)
    with pytest.raises(RegistryError):
        app.command("deploy")(lambda context: "y")
    with pytest.raises(RegistryError):
        app.command("Not A Name")(lambda context: "y")
    with pytest.raises(RegistryError):
        app.hook("no.such.point")
    with pytest.raises(RegistryError):
        app.hook(PRE)(guard)

    async def call(context: Any) -> None: ...

    with pytest.raises(RegistryError):
        app.include(Executor(name="r", operation="command.invoked", phase="in", call=call, is_remote=True))
