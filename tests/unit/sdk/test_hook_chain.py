"""The hook chain: who is called when, and what a reply, a refusal and a failure do."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tiny_harness.effects import CommandResult
from tiny_harness.errors import CommandFailed, HookAbort, HookFailed, HookTransportError
from tiny_harness.ext.task import Participant
from tiny_harness.hooks import Executor, Hooks, Outcome, call_function
from tiny_harness.hooks.chain import CHAIN_BUDGET_S
from tiny_harness.hooks.contexts import (
    CommandContext,
    ModelContext,
    ModelOutput,
    ObservedContext,
    RequestContext,
    SenderRef,
    TaskRef,
    WindowContext,
)

LONG_S = 30.0
"""A bound on waiting that only a broken chain reaches."""

TASK = TaskRef(task_id="t1", context_id="c1", state="TASK_STATE_INPUT_REQUIRED")
PEOPLE = (Participant(id="ann", role="reporter"),)
SENDER = SenderRef(id="ann", role="reporter")


def command_context(arguments: str = "prod", command: str = "deploy") -> CommandContext:
    return CommandContext(
        operation="command.invoked",
        phase="pre",
        task=TASK,
        participants=PEOPLE,
        sender=SENDER,
        correlation_id="k1",
        command=command,
        arguments=arguments,
    )


def request_context(text: str = "hello") -> RequestContext:
    return RequestContext(
        operation="request.received", phase="pre", task=TASK, correlation_id="k1", message_id="m1", text=text
    )


def executor(name: str, point: str, answer: Any = None, **settings: Any) -> Executor:
    """Make an executor that answers a value, or what a function of the context answers; an exception is raised."""
    operation, _, phase = point.rpartition(".")

    async def call(context: Any) -> Any:
        value = answer(context) if callable(answer) else answer
        if isinstance(value, BaseException):
            raise value
        return await value if isinstance(value, Awaitable) else value

    return Executor(name=name, operation=operation, phase=cast("Any", phase), call=call, **settings)


def says(reply: str) -> dict[str, Any]:
    return {"result": {"reply": reply}}


def reply_of(outcome: Outcome[CommandContext]) -> str:
    assert outcome.context.result is not None
    return outcome.context.result.reply


def appends(letter: str) -> Callable[[Any], dict[str, Any]]:
    return lambda context: {"arguments": context.arguments + letter}


async def test_executors_run_by_priority_and_then_by_registration() -> None:
    hooks = Hooks(
        [
            executor("c", "command.invoked.pre", appends("c"), priority=2000),
            executor("a", "command.invoked.pre", appends("a")),
            executor("b", "command.invoked.pre", appends("b")),
            executor("first", "command.invoked.pre", appends("1"), priority=1),
        ]
    )
    outcome = await hooks.run(command_context(""))
    assert outcome.context.arguments == "1abc"
    assert [verdict.executor for verdict in outcome.verdicts] == ["first", "a", "b", "c"]
    assert {verdict.kind for verdict in outcome.verdicts} == {"replaced"}


async def test_phases_run_in_their_order_and_each_context_names_its_own() -> None:
    seen: list[tuple[str, str]] = []

    def note(context: CommandContext) -> dict[str, Any] | None:
        seen.append((context.phase, context.delivery_id))
        return says("done") if context.phase == "in" else None

    hooks = Hooks([executor(phase, f"command.invoked.{phase}", note) for phase in ("post", "in", "pre")])
    outcome = await hooks.run(command_context())
    assert [phase for phase, _ in seen] == ["pre", "in", "post"]
    assert len({delivery for _, delivery in seen}) == 3
    assert outcome.verdicts == ()


async def test_the_first_body_that_sets_a_result_is_the_body() -> None:
    hooks = Hooks(
        [
            executor("default", "command.invoked.in", says("default")),
            executor("never", "command.invoked.in", lambda _: pytest.fail("called"), priority=2000),
            executor("passes", "command.invoked.in", None, priority=100),
            executor("says nothing", "command.invoked.in", {"result": None}, priority=200),
            executor("replaces", "command.invoked.in", says("mine"), priority=500),
        ]
    )
    assert reply_of(await hooks.run(command_context())) == "mine"


async def test_the_engines_own_body_stands_at_the_default_priority() -> None:
    async def body(context: CommandContext) -> CommandResult:
        return CommandResult(reply=f"own {context.arguments}")

    behind = executor("behind", "command.invoked.in", says("behind"))
    before = executor("before", "command.invoked.in", says("before"), priority=999)
    assert reply_of(await Hooks([behind]).run(command_context(), body)) == "own prod"
    assert reply_of(await Hooks([before]).run(command_context(), body)) == "before"


async def test_a_body_gets_what_a_pre_executor_put_in_place() -> None:
    hooks = Hooks(
        [
            executor("pre", "command.invoked.pre", {"arguments": "staging"}),
            executor("body", "command.invoked.in", lambda context: says(context.arguments)),
        ]
    )
    assert reply_of(await hooks.run(command_context())) == "staging"


async def test_a_post_reply_replaces_only_the_fields_that_it_names() -> None:
    hooks = Hooks(
        [
            executor("body", "command.invoked.in", {"result": {"reply": "long words", "data": {"n": 1}}}),
            executor("post", "command.invoked.post", {"result": {"reply": "short"}}),
        ]
    )
    result = (await hooks.run(command_context())).context.result
    assert result == CommandResult(reply="short", data={"n": 1})


async def test_an_executor_with_a_command_is_called_for_that_one_alone() -> None:
    hooks = Hooks([executor("deploys", "command.invoked.pre", HookAbort("no"), command="deploy")])
    assert (await hooks.run(command_context(command="deploy"))).refusal == "no"
    assert (await hooks.run(command_context(command="status"))).refusal is None


async def test_here_and_elsewhere_part_the_executors() -> None:
    hooks = Hooks(
        [
            executor("local", "command.invoked.pre", appends("l")),
            executor("remote", "command.invoked.pre", appends("r"), is_remote=True),
        ]
    )
    assert (await hooks.run(command_context(""), where="here")).context.arguments == "l"
    assert (await hooks.run(command_context(""), where="elsewhere")).context.arguments == "r"
    assert (await hooks.run(command_context(""))).context.arguments == "lr"
    assert hooks.has_remote("command.invoked", "deploy")
    assert not hooks.has_remote("request.received")


@pytest.mark.parametrize("name", ["task", "participants", "sender", "command", "result", "phase", "wat"])
async def test_a_reply_with_a_field_beyond_its_point_is_refused_whole(name: str) -> None:
    hooks = Hooks([executor("greedy", "command.invoked.pre", {"arguments": "x", name: "y"})])
    outcome = await hooks.run(command_context())
    assert outcome.failure is not None
    assert name in outcome.failure.reason
    assert outcome.context.arguments == "prod"


@pytest.mark.parametrize(
    "answer",
    ["yes", True, False, 0, "", [], [("arguments", "x")], 5, {"arguments": 5}, {"arguments": None}, {"arguments": {}}],
    ids=repr,
)
async def test_an_answer_of_the_wrong_type_is_a_failure_and_no_consent(answer: Any) -> None:
    outcome = await Hooks([executor("odd", "command.invoked.pre", answer)]).run(command_context())
    assert outcome.failure is not None
    assert outcome.failure.executor == "odd"
    assert outcome.context.arguments == "prod"


@pytest.mark.parametrize(
    "result",
    [5, "words", {}, {"reply": ""}, {"reply": "x", "wat": 1}, {"reply": "x", "effects": [{"kind": "erase"}]}],
    ids=repr,
)
async def test_a_body_with_a_malformed_result_fails_and_sets_nothing(result: Any) -> None:
    outcome = await Hooks([executor("odd", "command.invoked.in", {"result": result})]).run(command_context())
    assert outcome.failure is not None
    assert outcome.context.result is None


async def test_a_result_of_10_mb_is_a_failure() -> None:
    outcome = await Hooks([executor("big", "command.invoked.in", says("x" * 10_000_000))]).run(command_context())
    assert outcome.failure is not None
    assert len(outcome.failure.reason) <= 300


async def test_a_refusal_ends_the_chain_with_its_reason() -> None:
    hooks = Hooks(
        [
            executor("policy", "command.invoked.pre", HookAbort("not on Fridays")),
            executor("later", "command.invoked.pre", lambda _: pytest.fail("called"), priority=2000),
            executor("body", "command.invoked.in", lambda _: pytest.fail("called")),
            executor("post", "command.invoked.post", lambda _: pytest.fail("called")),
        ]
    )
    outcome = await hooks.run(command_context())
    assert (outcome.refusal, outcome.failure) == ("not on Fridays", None)
    [verdict] = outcome.verdicts
    assert (verdict.executor, verdict.point, verdict.kind) == ("policy", "command.invoked.pre", "refused")


async def test_a_post_executor_may_refuse_what_was_answered() -> None:
    hooks = Hooks(
        [
            executor("body", "command.invoked.in", says("secret plans")),
            executor("censor", "command.invoked.post", HookAbort("not for you")),
        ]
    )
    assert (await hooks.run(command_context())).refusal == "not for you"


async def test_a_refusal_counts_also_from_an_executor_that_may_be_done_without() -> None:
    hooks = Hooks([executor("policy", "command.invoked.pre", HookAbort("no"), on_failure="open")])
    assert (await hooks.run(command_context())).refusal == "no"


@pytest.mark.parametrize("reason", [None, 5, {"why": "not"}])
async def test_a_refusal_whose_reason_is_no_text_is_still_one(reason: Any) -> None:
    outcome = await Hooks([executor("policy", "command.invoked.pre", HookAbort(reason))]).run(command_context())
    assert outcome.refusal == str(reason)


async def test_a_long_reason_is_cut() -> None:
    outcome = await Hooks([executor("p", "command.invoked.pre", HookAbort("x" * 1000))]).run(command_context())
    assert outcome.refusal == "x" * 300


async def test_a_body_may_not_refuse() -> None:
    outcome = await Hooks([executor("body", "command.invoked.in", HookAbort("no"))]).run(command_context())
    assert outcome.refusal is None
    assert outcome.failure is not None


@pytest.mark.parametrize("is_observed", [False, True])
async def test_nobody_refuses_an_operation_that_may_not_be_refused(is_observed: bool) -> None:
    operation = "state.changed" if is_observed else "context.created"
    context = (
        ObservedContext(operation=operation, phase="post", task=TASK, correlation_id="k", seq=1, event={})
        if is_observed
        else WindowContext(operation=operation, phase="post", task=TASK, correlation_id="k", turn=1, step=1)
    )
    outcome = await Hooks([executor("bossy", f"{operation}.post", HookAbort("no"))]).run(context)
    assert outcome.refusal is None
    assert outcome.failure is not None


async def test_a_failure_ends_the_chain_unless_the_executor_may_be_done_without() -> None:
    def hooks(on_failure: str) -> Hooks:
        return Hooks(
            [
                executor("broken", "command.invoked.pre", KeyError("oops"), on_failure=on_failure),
                executor("body", "command.invoked.in", says("done")),
            ]
        )

    closed, opened = await hooks("closed").run(command_context()), await hooks("open").run(command_context())
    assert isinstance(closed.failure, HookFailed)
    assert (closed.failure.point, closed.failure.executor) == ("command.invoked.pre", "broken")
    assert closed.context.result is None
    assert (opened.failure, reply_of(opened)) == (None, "done")
    assert [verdict.kind for verdict in (*closed.verdicts, *opened.verdicts)] == ["failed", "failed"]


async def test_what_a_body_says_of_its_command_is_an_answer_and_no_failure_of_the_hook() -> None:
    watched: list[HookFailed | None] = []
    body = executor("b", "command.invoked.in", CommandFailed("no such env: s3cret"))
    hooks = Hooks([body], mask=mask, watch=lambda _executor, failure: watched.append(failure))
    outcome = await hooks.run(command_context())
    assert (outcome.failure, outcome.refusal, outcome.verdicts) == (None, None, ())
    assert outcome.context.result == CommandResult(reply="no such env: ***", outcome="refused")
    assert watched == [None]


@pytest.mark.parametrize("point", ["command.invoked.pre", "command.invoked.post"])
async def test_only_a_body_can_say_what_became_of_its_command(point: str) -> None:
    body = executor("b", "command.invoked.in", says("done"))
    outcome = await Hooks([body, executor("other", point, CommandFailed("no"))]).run(command_context())
    assert outcome.failure is not None
    assert (outcome.failure.point, outcome.failure.reason) == (point, "no")


async def test_a_failed_transport_stays_what_it_is_with_its_secrets_masked() -> None:
    error = HookTransportError("command.invoked.in", "far", "answered s3cret" + "!" * 400)
    hooks = Hooks([executor("far", "command.invoked.in", error)], redact=mask)
    outcome = await hooks.run(command_context())
    assert isinstance(outcome.failure, HookTransportError)
    assert outcome.failure.reason.startswith("answered ***!")
    assert len(outcome.failure.reason) == 300


@pytest.mark.parametrize("error", [SystemExit(1), asyncio.CancelledError("mine"), StopIteration(), RecursionError()])
async def test_an_executor_can_end_neither_the_process_nor_the_operation(error: BaseException) -> None:
    async with asyncio.timeout(LONG_S):
        outcome = await Hooks([executor("wild", "command.invoked.pre", error)]).run(command_context())
    assert outcome.failure is not None
    assert outcome.failure.executor == "wild"


async def test_a_plain_function_can_not_end_the_process() -> None:
    def leave(_context: Any) -> None:
        raise SystemExit(3)

    hooks = Hooks([Executor("wild", "command.invoked", "pre", call_function(leave))])
    assert (await hooks.run(command_context())).failure is not None


async def test_an_executor_that_hangs_fails_at_its_deadline() -> None:
    was_cancelled = asyncio.Event()

    async def hang() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            was_cancelled.set()

    hooks = Hooks([executor("slow", "command.invoked.pre", lambda _: hang(), deadline_s=0.05)])
    async with asyncio.timeout(LONG_S):
        outcome = await hooks.run(command_context())
        await was_cancelled.wait()
    assert outcome.failure is not None
    assert "0.05 s" in outcome.failure.reason


async def test_the_deadline_holds_for_an_executor_that_swallows_its_cancellation() -> None:
    swallowed, leave = asyncio.Event(), asyncio.Event()

    async def cling() -> None:
        while not leave.is_set():
            try:
                await leave.wait()
            except asyncio.CancelledError:
                swallowed.set()

    hooks = Hooks([executor("clings", "command.invoked.pre", lambda _: cling(), deadline_s=0.05)])
    async with asyncio.timeout(LONG_S):
        outcome = await hooks.run(command_context())
        await swallowed.wait()
    leave.set()
    assert outcome.failure is not None


async def test_the_deadline_holds_for_a_plain_function_that_blocks() -> None:
    leave = threading.Event()

    def block(_context: Any) -> None:
        leave.wait(LONG_S)

    hooks = Hooks([Executor("blocks", "command.invoked", "pre", call_function(block), deadline_s=0.05)])
    try:
        async with asyncio.timeout(LONG_S):
            outcome = await hooks.run(command_context())
    finally:
        leave.set()
    assert outcome.failure is not None


async def test_a_chain_has_a_budget_over_all_of_its_executors(monkeypatch: pytest.MonkeyPatch) -> None:
    assert CHAIN_BUDGET_S == 10.0
    clock = Clock()
    monkeypatch.setattr("tiny_harness.hooks.chain.time", SimpleNamespace(perf_counter=clock))

    def slow(_context: Any) -> None:
        clock.now += 6.0

    hooks = Hooks(
        [
            executor("one", "command.invoked.pre", slow),
            executor("two", "command.invoked.pre", slow),
            executor("three", "command.invoked.pre", lambda _: asyncio.Event().wait()),
        ]
    )
    async with asyncio.timeout(LONG_S):
        outcome = await hooks.run(command_context())
    assert outcome.failure is not None
    assert outcome.failure.executor == "three"
    assert [(verdict.kind, verdict.ms) for verdict in outcome.verdicts][:2] == [("slow", 6000), ("slow", 6000)]
    assert outcome.verdicts[2].ms == 0, "nothing was left for it, and its own deadline is 5 s"


class Clock:
    """A clock that tests move."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


async def test_cancelling_an_operation_cancels_the_executor_that_runs() -> None:
    began, ended = asyncio.Event(), asyncio.Event()

    async def wait() -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    running = asyncio.ensure_future(
        Hooks([executor("waits", "command.invoked.pre", lambda _: wait(), on_failure="open")]).run(command_context())
    )
    async with asyncio.timeout(LONG_S):
        await began.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        await ended.wait()


async def test_cancelling_an_operation_cancels_the_engines_own_body() -> None:
    began = asyncio.Event()

    async def body(_context: Any) -> ModelOutput:
        began.set()
        await asyncio.Event().wait()
        raise AssertionError

    context = ModelContext(
        operation="llm.invoked", phase="pre", task=TASK, correlation_id="k", turn=1, step=1, messages=()
    )
    running = asyncio.ensure_future(Hooks().run(context, body))
    async with asyncio.timeout(LONG_S):
        await began.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running


def mask(document: Any) -> Any:
    """Stands in for the redactor: masks one word."""
    if isinstance(document, str):
        return document.replace("s3cret", "***")
    if isinstance(document, Mapping):
        return {key: mask(value) for key, value in cast("Mapping[str, Any]", document).items()}
    if isinstance(document, list | tuple):
        return [mask(value) for value in cast("list[Any]", document)]
    return document


async def test_an_executor_sees_no_secret_and_gives_none_away() -> None:
    seen: list[str] = []

    def spy(context: CommandContext) -> dict[str, Any]:
        seen.append(context.arguments)
        return says("the s3cret is out")

    hooks = Hooks([executor("spy", "command.invoked.in", spy)], redact=mask, mask=mask)
    outcome = await hooks.run(command_context("a s3cret"))
    assert seen == ["a ***"]
    assert reply_of(outcome) == "the *** is out"
    assert outcome.context.arguments == "a s3cret", "what was asked stays as it was"


async def test_reasons_are_redacted() -> None:
    refused = await Hooks([executor("p", "command.invoked.pre", HookAbort("s3cret"))], redact=mask).run(
        command_context()
    )
    failed = await Hooks([executor("p", "command.invoked.pre", KeyError("s3cret"))], redact=mask).run(command_context())
    assert refused.refusal == "***"
    assert failed.failure is not None
    assert "s3cret" not in failed.failure.reason
    assert "s3cret" not in repr((refused.verdicts, failed.verdicts))


async def test_a_built_in_executor_sees_the_context_as_it_is() -> None:
    hooks = Hooks(
        [executor("b", "command.invoked.in", lambda context: says(context.arguments), is_builtin=True)], redact=mask
    )
    assert reply_of(await hooks.run(command_context("a s3cret"))) == "a s3cret"


async def test_a_redactor_that_breaks_lets_nothing_through() -> None:
    def broken(_document: Any) -> Any:
        raise RuntimeError("no words for it")

    seen: list[Any] = []
    hooks = Hooks([executor("spy", "command.invoked.pre", seen.append)], redact=broken)
    with pytest.raises(RuntimeError):
        await hooks.run(command_context())
    assert seen == []


async def test_an_executor_can_not_change_the_context_behind_the_chains_back() -> None:
    def tamper(context: RequestContext) -> None:
        context.task.usage["calls"] = 1_000_000

    outcome = await Hooks([executor("tampers", "request.received.pre", tamper)]).run(request_context())
    assert outcome.context.task.usage == {}


async def test_whoever_watches_hears_of_each_call() -> None:
    heard: list[tuple[str, bool]] = []
    hooks = Hooks(
        [
            executor("fine", "command.invoked.pre"),
            executor("broken", "command.invoked.pre", KeyError(), on_failure="open"),
            executor("refuses", "command.invoked.pre", HookAbort("no")),
        ],
        watch=lambda one, failure: heard.append((one.name, failure is None)),
    )
    await hooks.run(command_context())
    assert heard[:2] == [("fine", True), ("broken", False)]


async def test_a_slow_executor_leaves_a_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tiny_harness.hooks.chain.SLOW_S", 0.0)
    outcome = await Hooks([executor("slow", "command.invoked.pre")]).run(command_context())
    [verdict] = outcome.verdicts
    assert (verdict.executor, verdict.kind) == ("slow", "slow")


async def test_a_point_without_executors_changes_nothing() -> None:
    context = request_context()
    outcome = await Hooks().run(context)
    assert outcome == Outcome(context)


async def test_a_call_that_awaits_inside_a_plain_function_is_awaited() -> None:
    async def later() -> dict[str, Any]:
        return {"text": "changed"}

    hooks = Hooks([Executor("odd", "request.received", "pre", call_function(lambda _context: later()))])
    assert (await hooks.run(request_context())).context.text == "changed"
