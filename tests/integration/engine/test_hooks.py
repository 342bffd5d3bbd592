"""Every acting point on a real engine, with executors in the process and behind a real socket."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tiny_harness.commands import CommandResult, CommandSpec, CreateSubTask, SetModel
from tiny_harness.errors import HookAbort, RefusedByPolicy
from tiny_harness.executors import ExecutorApp, serving_executors
from tiny_harness.ext import stream
from tiny_harness.hooks import Executor, call_function
from tiny_harness.hooks.contexts import (
    CommandContext,
    CompletionContext,
    ModelContext,
    ObservedContext,
    RequestContext,
    TaskCreatedContext,
    WindowContext,
)
from tiny_harness.hooks.executor import HookFunction
from tiny_harness.plugins import Plugin, RemoteDeclaration
from tiny_harness.states import TaskState

from .conftest import PATIENCE_S, Engine, Task

SECRET = "a secret of the test, long enough"
DEAD_URL = "http://127.0.0.1:9/rpc"


def local(point: str, function: HookFunction, **more: Any) -> Plugin:
    operation, _, phase = point.rpartition(".")
    executor = Executor("p/it", operation, phase, call_function(function), **more)  # pyright: ignore[reportArgumentType]
    return Plugin("p", executors=(executor,))


def remote(point: str, url: str, **more: Any) -> Plugin:
    return Plugin("r", remote=(RemoteDeclaration(name="r/it", point=point, url=url, key_id="r", plugin="r", **more),))


@asynccontextmanager
async def elsewhere(patch: pytest.MonkeyPatch, point: str, function: HookFunction) -> AsyncGenerator[str]:
    """Serve one executor on a real socket."""
    patch.setenv("TINY_HARNESS_HOOK_SECRET_R", SECRET)
    app = ExecutorApp("r")
    app.hook(point)(function)
    async with serving_executors(app, "127.0.0.1:0") as url:
        yield url


async def turn(task: Task, message_id: str, text: str, number: int) -> str:
    """Say something, and wait for the reply."""
    await task.say(message_id, text)
    await task.until(lambda s: s.turn == number and s.state is TaskState.INPUT_REQUIRED)
    return (await task.replies())[-1]


def windows(engine: Engine) -> list[list[str]]:
    return [[message.text for message in request.messages] for request in engine.model.requests]


async def test_a_policy_here_refuses_a_message_and_nothing_is_stored_or_woken(stopped: Engine) -> None:
    async def check(context: RequestContext) -> None:
        if "forbidden" in context.text:
            raise HookAbort("not that word")

    async with stopped.working(plugins=[local("request.received.pre", check)]):
        task = stopped.task()
        with pytest.raises(RefusedByPolicy) as caught:
            await task.start("m1", "a forbidden thing")
        assert caught.value.reason == "not that word"
        assert await stopped.store.task(task.id) is None
        other = stopped.task()
        await other.start("m1", "one")
        before = await other.until_state("INPUT_REQUIRED")
        with pytest.raises(RefusedByPolicy):
            await other.say("m2", "forbidden")
        assert await other.snapshot() == before
    assert windows(stopped) == [["one"]]


async def test_a_hook_here_replaces_what_is_stored_and_read(stopped: Engine) -> None:
    async def scrub(context: RequestContext) -> dict[str, Any]:
        return {"text": context.text.replace("4111", "****")}

    async with stopped.working(plugins=[local("request.received.pre", scrub)]):
        task = stopped.task()
        await task.start("m1", "my card is 4111")
        await task.until_state("INPUT_REQUIRED")
        assert (await task.say("m1", "my card is 4111")).received_as == "repeat"
    assert windows(stopped) == [["my card is ****"]]
    assert "4111" not in str(await task.log())


async def test_a_policy_elsewhere_refuses_in_a_reply_and_no_model_ever_reads_the_message(
    stopped: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def check(context: RequestContext) -> dict[str, Any] | None:
        if "forbidden" in context.text:
            raise HookAbort("not that word")
        return {"text": "two, amended"} if context.text == "two" else None

    point = "request.received.pre"
    async with elsewhere(monkeypatch, point, check) as url, stopped.working(plugins=[remote(point, url)]):
        task = stopped.task()
        await task.start("m1", "a forbidden thing")
        await task.until_state("INPUT_REQUIRED")
        refused = (await task.log())[-1]["statusUpdate"]
        assert await turn(task, "m2", "two", 2) == "re: two, amended"
        assert await turn(task, "m3", "three", 3) == "re: three"
    assert refused["status"]["message"]["parts"][0]["text"] == "Refused: not that word"
    assert refused["metadata"][stream.KEY]["refused"] == ["m1"]
    assert windows(stopped)[-1] == ["Refused: not that word", "two, amended", "re: two, amended", "three"]
    assert (await task.snapshot()).usage.calls == 2


async def test_a_policy_elsewhere_that_is_down_lets_nothing_through_and_an_open_one_stops_nothing(
    stopped: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TINY_HARNESS_HOOK_SECRET_R", SECRET)
    point = "request.received.pre"
    async with stopped.working(plugins=[remote(point, DEAD_URL)]):
        task = stopped.task()
        await task.start("m1", "one")
        await task.until_state("INPUT_REQUIRED")
        assert (await task.replies())[0].startswith("Refused: ")
    async with stopped.working(plugins=[remote(point, DEAD_URL, on_failure="open")]):
        assert await turn(task, "m2", "two", 2) == "re: two"
    assert [window[-1] for window in windows(stopped)] == ["two"]
    assert "one" not in windows(stopped)[0]


async def test_a_message_whose_turn_was_cut_is_asked_about_before_a_later_turn_reads_it(
    stopped: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached, gate = asyncio.Event(), asyncio.Event()
    answers = {"forbidden": 0}

    async def check(context: RequestContext) -> None:
        if "forbidden" in context.text:
            answers["forbidden"] += 1
            if answers["forbidden"] == 1:
                reached.set()
                await gate.wait()
            raise HookAbort("not that word")

    point = "request.received.pre"
    async with elsewhere(monkeypatch, point, check) as url, stopped.working(plugins=[remote(point, url)]):
        task = stopped.task()
        await task.start("m1", "a forbidden thing")
        async with asyncio.timeout(PATIENCE_S):
            await reached.wait()
        await task.control("i", "interrupt")
        gate.set()
        assert await turn(task, "m2", "two", 2) == "re: two"
    assert windows(stopped) == [["two"]]


async def test_a_task_that_may_not_start_is_not_made_here_and_rejected_from_elsewhere(
    stopped: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def check(_context: TaskCreatedContext) -> None:
        raise HookAbort("closed on Sundays")

    point = "task.created.pre"
    async with stopped.working(plugins=[local(point, check)]):
        task = stopped.task()
        with pytest.raises(RefusedByPolicy):
            await task.start("m1", "one")
        assert await stopped.store.task(task.id) is None
    async with elsewhere(monkeypatch, point, check) as url, stopped.working(plugins=[remote(point, url)]):
        told, asked = stopped.task(), stopped.task()
        await told.start("m1", "one")
        await told.until_state("REJECTED")
        await asked.start("c1", "/help")
        await asked.until_state("REJECTED")
        kept = await stopped.store.verdicts(asked.id)
    assert await told.replies() == ["closed on Sundays"]
    assert await asked.replies() == ["closed on Sundays"]
    assert [(one.verdict.kind, one.verdict.reason) for one in kept] == [("refused", "closed on Sundays")]
    assert stopped.model.requests == []


async def test_a_sub_task_that_may_not_start_is_a_refused_command(stopped: Engine) -> None:
    async def check(context: TaskCreatedContext) -> None:
        if context.task.parent_tasks:
            raise HookAbort("no sub-tasks here")

    async with stopped.working(plugins=[local("task.created.pre", check)]):
        task = stopped.task()
        await task.start("m1", "one")
        await task.until_state("INPUT_REQUIRED")
        answer = await task.command("c1", "/sub-task x")
    assert (answer.outcome, answer.text) == ("refused", "no sub-tasks here")
    assert (await task.snapshot()).children == ()


async def test_a_hook_overrides_the_rule_about_open_sub_tasks(stopped: Engine) -> None:
    async def allow(context: CompletionContext) -> dict[str, Any]:
        assert context.unresolved
        return {"result": {"allowed": True}}

    async with stopped.working(plugins=[local("task.complete.in", allow, priority=500)]):
        task = stopped.task()
        await task.start("m1", "one")
        await task.until_state("INPUT_REQUIRED")
        await task.command("c1", "/sub-task x")
        await task.control("x", "complete")
        await task.until_state("COMPLETED")


@pytest.mark.parametrize("is_remote", [False, True], ids=["here", "elsewhere"])
async def test_a_hook_refuses_a_completion_and_the_task_parks(
    stopped: Engine, monkeypatch: pytest.MonkeyPatch, is_remote: bool
) -> None:
    async def check(context: CompletionContext) -> None:
        raise HookAbort(f"not by {context.requested_by}")

    point = "task.complete.pre"
    async with elsewhere(monkeypatch, point, check) as url:
        plugin = remote(point, url) if is_remote else local(point, check)
        async with stopped.working(plugins=[plugin]):
            task = stopped.task()
            stopped.model.hold()
            await task.start("m1", "one")
            await stopped.model.until_asked()
            with pytest.raises(RefusedByPolicy) as caught:
                await task.control("x", "complete")
            await task.until_state("INPUT_REQUIRED")
    assert caught.value.reason == "not by ann"


async def test_a_completion_that_hooks_elsewhere_allow_goes_through(
    stopped: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def allow(_context: CompletionContext) -> None:
        return None

    point = "task.complete.pre"
    async with elsewhere(monkeypatch, point, allow) as url, stopped.working(plugins=[remote(point, url)]):
        task = stopped.task()
        await task.start("m1", "one")
        await task.until_state("INPUT_REQUIRED")
        await task.control("x", "complete")
        await task.until_state("COMPLETED")
        assert (await task.snapshot()).state is TaskState.COMPLETED


async def test_hooks_replace_the_window_the_input_and_the_output_of_a_model(stopped: Engine) -> None:
    async def window(context: WindowContext) -> dict[str, Any]:
        assert context.result is not None
        kept = [message.model_dump() for message in context.result.messages]
        return {"result": {"messages": [{"role": "user", "text": "be brief"}, *kept]}}

    async def input_(context: ModelContext) -> dict[str, Any]:
        return {"messages": [{**message.model_dump(), "text": message.text.upper()} for message in context.messages]}

    async def output(context: ModelContext) -> dict[str, Any]:
        assert context.result is not None
        return {"result": {"text": f"<{context.result.text}>"}}

    points = (("context.created.post", window), ("llm.invoked.pre", input_), ("llm.invoked.post", output))
    executors = tuple(
        Executor(f"p/{point}", point.rpartition(".")[0], point.rpartition(".")[2], call_function(function))  # pyright: ignore[reportArgumentType]
        for point, function in points
    )
    async with stopped.working(plugins=[Plugin("p", executors=executors)]):
        task = stopped.task()
        await task.start("m1", "one")
        await task.until_state("INPUT_REQUIRED")
        verdicts = await stopped.store.verdicts(task.id)
    assert windows(stopped) == [["BE BRIEF", "ONE"]]
    assert await task.replies() == ["<re: ONE>"]
    assert {kept.verdict.kind for kept in verdicts} == {"replaced"}
    assert len(verdicts) == 3


async def test_a_body_of_somebody_elses_answers_in_the_models_place(stopped: Engine) -> None:
    async def canned(_context: ModelContext) -> dict[str, Any]:
        return {"result": {"text": "canned"}}

    async with stopped.working(plugins=[local("llm.invoked.in", canned, priority=500)]):
        task = stopped.task()
        await task.start("m1", "one")
        await task.until_state("INPUT_REQUIRED")
    assert await task.replies() == ["canned"]
    assert stopped.model.requests == []


async def test_a_vetoed_model_call_parks_with_the_reason_and_the_next_message_tries_again(stopped: Engine) -> None:
    async def budget(context: ModelContext) -> None:
        if context.turn == 1:
            raise HookAbort("no money left")

    async with stopped.working(plugins=[local("llm.invoked.pre", budget)]):
        task = stopped.task()
        await task.start("m1", "one")
        await task.until_state("INPUT_REQUIRED")
        assert await task.replies() == ["no money left"]
        assert await turn(task, "m2", "two", 2) == "re: two"


async def test_an_observer_hears_everything_once_in_order_after_its_commit(stopped: Engine) -> None:
    heard: list[tuple[str, int]] = []
    done = asyncio.Event()

    async def hear(context: ObservedContext) -> None:
        heard.append((context.operation, context.seq))
        if context.operation == "state.changed":
            done.set()

    operations = ("task.started", "message.received", "reply.sent", "state.changed")
    executors = tuple(Executor(f"p/{name}", name, "post", call_function(hear)) for name in operations)
    async with stopped.working(plugins=[Plugin("p", executors=executors)]):
        task = stopped.task()
        await task.start("m1", "one")
        await task.until_state("INPUT_REQUIRED")
        await task.command("c1", "/status")
        await task.control("x", "complete")
        async with asyncio.timeout(PATIENCE_S):
            await done.wait()
    assert sorted(heard, key=lambda entry: entry[1]) == [
        ("task.started", 1),
        ("reply.sent", 2),
        ("message.received", 3),
        ("reply.sent", 4),
        ("state.changed", 5),
    ]


async def test_a_command_elsewhere_runs_and_its_death_in_the_middle_is_its_reply(
    stopped: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TINY_HARNESS_HOOK_SECRET_R", SECRET)
    reached = asyncio.Event()
    app = ExecutorApp("r")

    @app.command("deploy")
    async def deploy(context: CommandContext) -> CommandResult:
        if context.arguments == "slowly":
            reached.set()
            await asyncio.Event().wait()
        effects = (SetModel(model="huge"),) if context.arguments == "greedily" else ()
        return CommandResult(reply=f"deployed {context.arguments}; the task is COMPLETED", effects=effects)

    assert deploy is not None
    spec = CommandSpec(name="deploy")
    async with serving_executors(app, "127.0.0.1:0") as url:
        declaration = RemoteDeclaration(
            name="r/deploy", point="command.invoked.in", url=url, key_id="r", command="deploy", deadline_s=1, plugin="r"
        )
        async with stopped.working(plugins=[Plugin("r", commands=(spec,), remote=(declaration,))]):
            task = stopped.task()
            await task.start("m1", "one")
            before = await task.until_state("INPUT_REQUIRED")
            done = await task.command("c1", "/deploy now")
            greedy = await task.command("c2", "/deploy greedily")
            late = await task.command("c3", "/deploy slowly")
            after = await task.snapshot()
    assert (done.outcome, done.text) == ("done", "deployed now; the task is COMPLETED")
    assert greedy.outcome == "refused"
    assert late.outcome == "failed"
    assert reached.is_set()
    assert after.model_copy(update={"head": before.head}) == before


async def test_contexts_are_redacted_before_an_executor_sees_them(
    stopped: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "sk-proj-" + "a1B2" * 10
    monkeypatch.setenv("TINY_HARNESS_HOOK_SECRET_X", "a configured secret value")
    seen: list[str] = []

    async def look(context: CommandContext) -> None:
        seen.append(context.arguments)

    async with stopped.working(plugins=[local("command.invoked.pre", look)]):
        task = stopped.task()
        await task.start("m1", "one")
        await task.until_state("INPUT_REQUIRED")
        answer = await task.command("c1", f"/sub-task use {secret} and a configured secret value")
    assert answer.outcome == "done"
    assert len(seen) == 1
    assert secret not in seen[0]
    assert "configured secret" not in seen[0]


async def test_an_effect_from_a_hook_in_front_of_a_built_in_creates_one_sub_task(stopped: Engine) -> None:
    async def split(_context: CommandContext) -> CommandResult:
        return CommandResult(reply="split", effects=(CreateSubTask(goal="half"),))

    async def body(context: CommandContext) -> dict[str, Any]:
        return {"result": await split(context)}

    async with stopped.working(plugins=[local("command.invoked.in", body, priority=1, command="status")]):
        task = stopped.task()
        await task.start("m1", "one")
        await task.until_state("INPUT_REQUIRED")
        answer = await task.command("c1", "/status")
    assert (answer.outcome, len((await task.snapshot()).children)) == ("done", 1)
