"""Slash commands on a real engine: recognised, run through their chain, and nothing changed but by their effects."""

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from temporalio.worker import Replayer

from tiny_harness.commands import CommandRegistry, CommandResult, CreateSubTask, SetModel
from tiny_harness.errors import CommandFailed, HookAbort, RoleNotPermitted, UnresolvedSubTasks
from tiny_harness.ext import commands as ext
from tiny_harness.hooks import Executor, call_function
from tiny_harness.hooks.contexts import CommandContext
from tiny_harness.hooks.executor import HookFunction
from tiny_harness.plugins import Plugin
from tiny_harness.settings import Settings
from tiny_harness.states import AWAITING_NEXT_MESSAGE, TaskState
from tiny_harness.store import Commit, NewEvent
from tiny_harness_engine.activities.run_command import RunCommandActivity
from tiny_harness_engine.calls import STEP_HEARTBEAT
from tiny_harness_engine.workflows.task import TaskWorkflow

from .conftest import Engine, Task

MODELS = ("small", "big")


@pytest.fixture
async def engine(stopped: Engine) -> AsyncGenerator[Engine]:
    """A running engine with models to choose from."""
    stopped.settings = with_models(stopped.settings)
    async with stopped.working():
        yield stopped


def with_models(settings: Settings) -> Settings:
    chosen = {"model": "small", "models": MODELS}
    return Settings.model_validate({**settings.model_dump(), "scripted": chosen, "openai": chosen})


async def parked(engine: Engine) -> Task:
    task = engine.task()
    await task.start("m1", "one")
    await task.until_state("INPUT_REQUIRED")
    return task


def executor(point: str, function: HookFunction, **more: Any) -> Executor:
    operation, _, phase = point.rpartition(".")
    return Executor(f"test/{function.__name__}", operation, phase, call_function(function), **more)  # pyright: ignore[reportArgumentType]


async def test_a_command_is_answered_without_the_model_and_leaves_the_task_parked(engine: Engine) -> None:
    task = await parked(engine)
    asked = len(engine.model.requests)
    answer = await task.command("c1", "/status")
    snapshot = await task.snapshot()
    assert (answer.name, answer.outcome, answer.state) == ("status", "done", "TASK_STATE_INPUT_REQUIRED")
    assert answer.data is not None
    assert answer.data["task_id"] == task.id
    assert task.id in answer.text
    assert (snapshot.state, snapshot.sub_state, snapshot.turn) == (TaskState.INPUT_REQUIRED, AWAITING_NEXT_MESSAGE, 1)
    assert len(engine.model.requests) == asked


async def test_a_command_is_instant_while_a_turn_runs(engine: Engine) -> None:
    task = engine.task()
    engine.model.hold()
    await task.start("m1", "one")
    await engine.model.until_asked()
    answer = await task.command("c1", "/status")
    assert answer.state == "TASK_STATE_WORKING"
    assert await task.replies() == [answer.text]
    engine.model.gate.set()
    await task.until_state("INPUT_REQUIRED")
    assert (await task.replies())[1:] == ["re: one"]


async def test_a_command_as_a_first_message_starts_a_parked_conversation(engine: Engine) -> None:
    task = engine.task()
    receipt = await task.start("c1", "/help")
    answer = await task.answer_to("c1")
    assert receipt.received_as == "command"
    assert "/status" in answer.text
    assert (await task.snapshot()).sub_state == AWAITING_NEXT_MESSAGE
    assert engine.model.requests == []
    await task.say("m1", "hello")
    await task.until(lambda s: s.turn == 1 and s.state is TaskState.INPUT_REQUIRED)
    assert [message.text for message in engine.model.requests[-1].messages] == ["hello"]


@pytest.mark.parametrize("text", ["/unknown x", "/Status", "//status", "/status-", " /status", "/status\u00a0x", "/"])
async def test_what_is_no_registered_command_goes_to_the_model_whole(engine: Engine, text: str) -> None:
    task = engine.task()
    receipt = await task.start("m1", text)
    await task.until_state("INPUT_REQUIRED")
    assert receipt.received_as == "turn"
    assert engine.model.requests[-1].messages[-1].text == text


async def test_a_literal_message_is_never_a_command(engine: Engine) -> None:
    task = await parked(engine)
    message = {
        "messageId": "m2",
        "role": "ROLE_USER",
        "parts": [{"text": "/model big"}],
        "metadata": {ext.KEY: {"literal": True}},
    }
    receipt = await task.deliver(message)
    await task.until(lambda s: s.turn == 2 and s.state is TaskState.INPUT_REQUIRED)
    assert receipt.received_as == "turn"
    assert (await task.snapshot()).model is None


async def test_a_repeated_command_is_not_run_twice(engine: Engine) -> None:
    task = await parked(engine)
    first = await task.say("c1", "/sub-task look here")
    second = await task.say("c1", "/sub-task look here")
    assert (first.received_as, second.received_as, second.seq) == ("command", "repeat", first.seq)
    assert len((await task.snapshot()).children) == 1
    assert len([reply for reply in await task.replies() if "Sub-task" in reply]) == 1


async def test_the_model_that_was_chosen_is_asked_from_then_on_and_after_a_restart(stopped: Engine) -> None:
    stopped.settings = with_models(stopped.settings)
    async with stopped.working():
        task = await parked(stopped)
        answer = await task.command("c1", "/model big")
        await task.say("m2", "two")
        await task.until(lambda s: s.turn == 2 and s.state is TaskState.INPUT_REQUIRED)
    async with stopped.working():
        await task.say("m3", "three")
        await task.until(lambda s: s.turn == 3 and s.state is TaskState.INPUT_REQUIRED)
    assert answer.outcome == "done"
    assert [request.model for request in stopped.model.requests] == [None, "big", "big"]
    [told] = [event for event in await task.log() if "The model is now" in json.dumps(event)]
    assert told["statusUpdate"]["metadata"]["io.github.madarauchiha-314.tiny-harness/task"]["model"] == "big"


async def test_a_model_that_is_offered_no_longer_is_not_asked(stopped: Engine) -> None:
    plain, stopped.settings = stopped.settings, with_models(stopped.settings)
    async with stopped.working():
        task = await parked(stopped)
        await task.command("c1", "/model big")
    stopped.settings = plain
    async with stopped.working():
        await task.say("m2", "two")
        await task.until(lambda s: s.turn == 2 and s.state is TaskState.INPUT_REQUIRED)
    assert stopped.model.requests[-1].model is None


async def test_an_unlisted_model_is_refused_with_those_that_are(engine: Engine) -> None:
    task = await parked(engine)
    answer = await task.command("c1", "/model huge")
    assert answer.outcome == "refused"
    assert "small, big" in answer.text
    assert (await task.snapshot()).model is None


async def test_an_effort_holds_for_every_later_call(engine: Engine) -> None:
    task = await parked(engine)
    await task.command("c1", "/effort high")
    await task.say("m2", "two")
    await task.until(lambda s: s.turn == 2 and s.state is TaskState.INPUT_REQUIRED)
    refused = await task.command("c2", "/effort maximum")
    assert [request.effort for request in engine.model.requests] == [None, "high"]
    assert refused.outcome == "refused"
    assert (await task.snapshot()).effort == "high"


async def test_a_sub_task_is_a_conversation_of_its_own_under_its_parent(engine: Engine) -> None:
    task = await parked(engine)
    await task.command("c0", "/model big")
    answer = await task.command("c1", "/sub-task look at the logs")
    assert answer.data is not None
    child = Task(engine, answer.data["task_id"])
    record = await engine.store.task(child.id)
    assert record is not None
    snapshot = record.snapshot
    assert json.loads(record.text)["goal"] == "look at the logs"
    assert (snapshot.state, snapshot.sub_state) == (TaskState.INPUT_REQUIRED, AWAITING_NEXT_MESSAGE)
    assert (snapshot.parent, snapshot.context_id, snapshot.model, snapshot.depth) == (task.id, "c", "big", 1)
    assert [(p.id, p.role) for p in snapshot.participants] == [("ann", "reporter"), ("tiny-harness", "assignee")]
    assert [row.task_id for row in (await task.snapshot()).children] == [child.id]


async def test_a_sub_task_answers_parks_and_tells_its_parent_when_it_is_completed(engine: Engine) -> None:
    task = await parked(engine)
    answer = await task.command("c1", "/sub-task look at the logs")
    assert answer.data is not None
    child = Task(engine, answer.data["task_id"])
    await engine.housekeeping().once()
    await child.say("k1", "what do you see?")
    await child.until(lambda s: s.turn == 1 and s.state is TaskState.INPUT_REQUIRED)
    assert "look at the logs" in engine.model.requests[-1].system
    await child.control("k2", "complete")
    await task.until(lambda s: s.children[0].state is TaskState.COMPLETED and s.turn == 2 and s.state.is_interrupted)
    assert "is COMPLETED" in engine.model.requests[-1].messages[-1].text
    told = [event for event in await task.log() if '"sub_tasks"' in json.dumps(event)][-1]
    rows = told["statusUpdate"]["metadata"]["io.github.madarauchiha-314.tiny-harness/task"]["sub_tasks"]
    assert rows[0]["state"] == "TASK_STATE_COMPLETED"


async def test_complete_with_an_open_sub_task_is_refused_and_names_it(engine: Engine) -> None:
    task = await parked(engine)
    answer = await task.command("c1", "/sub-task look")
    assert answer.data is not None
    before = await task.snapshot()
    with pytest.raises(UnresolvedSubTasks) as caught:
        await task.control("x1", "complete")
    assert tuple(caught.value.ids) == (answer.data["task_id"],)
    assert await task.snapshot() == before
    await engine.housekeeping().once()
    await Task(engine, answer.data["task_id"]).control("k1", "complete")
    await task.until(lambda s: s.turn == 2 and s.state is TaskState.INPUT_REQUIRED)
    await task.control("x2", "complete")
    await task.until_state("COMPLETED")


async def test_a_refused_complete_cuts_the_turn_and_parks(engine: Engine) -> None:
    task = await parked(engine)
    await task.command("c1", "/sub-task look")
    engine.model.hold()
    await task.say("m2", "two")
    await engine.model.until_asked()
    with pytest.raises(UnresolvedSubTasks):
        await task.control("x1", "complete")
    snapshot = await task.until_state("INPUT_REQUIRED")
    assert snapshot.sub_state == AWAITING_NEXT_MESSAGE


async def test_sub_tasks_are_limited_in_number_and_depth(stopped: Engine) -> None:
    limits = {"max_children": 2, "max_depth": 1}
    stopped.settings = Settings.model_validate({**stopped.settings.model_dump(), "tasks": limits})
    async with stopped.working():
        task = await parked(stopped)
        answers = [await task.command(f"c{n}", f"/sub-task {n}") for n in range(3)]
        assert answers[0].data is not None
        child = Task(stopped, answers[0].data["task_id"])
        await stopped.housekeeping().once()
        deeper = await child.command("k1", "/sub-task deeper")
    assert [answer.outcome for answer in answers] == ["done", "done", "refused"]
    assert deeper.outcome == "refused"


async def test_who_is_invited_is_on_the_task(engine: Engine) -> None:
    task = await parked(engine)
    await task.command("c1", "/invite bob watcher")
    roles = [(person.id, person.role) for person in (await task.snapshot()).participants]
    assert ("bob", "watcher") in roles
    assert (await task.command("c2", "/status", sender="bob")).outcome == "done"


@pytest.mark.parametrize("text", ["/model big", "/effort high", "/sub-task x", "/invite eve"])
async def test_a_watcher_is_refused_in_a_reply_and_nothing_changes(engine: Engine, text: str) -> None:
    task = await parked(engine)
    await task.command("c1", "/invite bob watcher")
    before = await task.snapshot()
    answer = await task.command("c2", text, sender="bob")
    after = await task.snapshot()
    assert answer.outcome == "refused"
    assert "watcher" in answer.text
    assert after.model_copy(update={"head": before.head}) == before
    with pytest.raises(RoleNotPermitted):
        await task.say("m2", "/no-such-command", sender="bob")


async def test_a_lower_priority_replaces_a_built_in(stopped: Engine) -> None:
    async def status(_context: CommandContext) -> dict[str, Any]:
        return {"result": {"reply": "all is well"}}

    plugin = Plugin("p", executors=(executor("command.invoked.in", status, priority=500, command="status"),))
    async with stopped.working(plugins=[plugin]):
        answer = await (await parked(stopped)).command("c1", "/status")
    assert (answer.text, answer.outcome) == ("all is well", "done")


async def test_a_pre_abort_refuses_with_its_reason_and_changes_nothing(stopped: Engine) -> None:
    async def freeze(context: CommandContext) -> None:
        if context.command == "model":
            raise HookAbort("models are frozen this week")

    stopped.settings = with_models(stopped.settings)
    async with stopped.working(plugins=[Plugin("p", executors=(executor("command.invoked.pre", freeze),))]):
        task = await parked(stopped)
        answer = await task.command("c1", "/model big")
        verdicts = await stopped.store.verdicts(task.id)
    assert (answer.text, answer.outcome) == ("models are frozen this week", "refused")
    assert (await task.snapshot()).model is None
    assert [(kept.verdict.kind, kept.verdict.reason) for kept in verdicts] == [
        ("refused", "models are frozen this week")
    ]


async def test_pre_replaces_the_arguments_and_post_the_reply(stopped: Engine) -> None:
    async def shorter(_context: CommandContext) -> dict[str, Any]:
        return {"arguments": "big"}

    async def louder(context: CommandContext) -> dict[str, Any]:
        assert context.result is not None
        return {"result": {"reply": context.result.reply.upper()}}

    executors = (executor("command.invoked.pre", shorter), executor("command.invoked.post", louder))
    stopped.settings = with_models(stopped.settings)
    async with stopped.working(plugins=[Plugin("p", executors=executors)]):
        task = await parked(stopped)
        answer = await task.command("c1", "/model biggest")
    assert answer.text == "THE MODEL IS NOW BIG."
    assert (await task.snapshot()).model == "big"


async def test_a_command_from_code_runs_and_its_failure_is_its_reply(stopped: Engine) -> None:
    registry = CommandRegistry()

    @registry.command("deploy", argument_hint="<env>", description="Deploy the build")
    async def deploy(context: CommandContext) -> CommandResult | str:
        if context.arguments == "moon":
            raise CommandFailed("there is no such environment")
        if context.arguments == "bug":
            raise RuntimeError("secret detail " * 100)
        return CommandResult(reply=f"deployed to {context.arguments}", data={"env": context.arguments})

    assert deploy is not None
    async with stopped.working(commands=registry):
        task = await parked(stopped)
        done = await task.command("c1", "/deploy staging")
        failed = await task.command("c2", "/deploy moon")
        broken = await task.command("c3", "/deploy bug")
        snapshot = await task.snapshot()
    assert (done.text, done.data, done.outcome) == ("deployed to staging", {"env": "staging"}, "done")
    assert (failed.outcome, failed.text) == ("refused", "there is no such environment")
    assert broken.outcome == "failed"
    assert len(broken.text) < 500
    assert (snapshot.state, snapshot.commands) == (TaskState.INPUT_REQUIRED, ())


async def test_a_commands_receipt_says_whether_its_reply_is_in_the_store(stopped: Engine) -> None:
    registry = CommandRegistry()
    registry.register("deploy", "", "", lambda _context: "deployed")
    async with stopped.working(commands=registry):
        task = await parked(stopped)
        instant = await task.say("c1", "/status")
        later = await task.say("c2", "/deploy")
        words = await task.say("m2", "two")
        first = await stopped.task().start("c1", "/help")
    assert [receipt.is_answered for receipt in (instant, later, words, first)] == [True, False, False, True]


async def test_status_shows_sub_tasks_as_they_are_wherever_it_runs(stopped: Engine) -> None:
    async def nobody(_context: CommandContext) -> None:
        """A body that has no answer: with it, nothing is a matter for the harness alone."""

    for plugins in ([], [Plugin("p", executors=(executor("command.invoked.in", nobody, priority=1),))]):
        async with stopped.working(plugins=plugins):
            task = await parked(stopped)
            made = await task.command("c1", "/sub-task x")
            assert made.data is not None
            await _end_unheard(stopped, made.data["task_id"])
            answer = await task.command("c2", "/status")
        assert answer.data is not None
        assert [child["state"] for child in answer.data["sub_tasks"]] == ["TASK_STATE_COMPLETED"]


async def _end_unheard(engine: Engine, task_id: str) -> None:
    """End a task in the store, as if the news had not come to its parent yet."""
    record = await engine.store.task(task_id)
    assert record is not None
    ended = record.snapshot.model_copy(update={"state": TaskState.COMPLETED, "sub_state": None})
    event = NewEvent("state", lambda *_: "{}")
    await engine.store.commit(Commit(task_id, "test", record.snapshot.head, [event], ended, ""))


async def test_a_command_that_no_worker_brings_to_an_end_is_answered_by_its_name(
    stopped: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def lost(*_: object) -> None:
        raise RuntimeError("planted")

    monkeypatch.setattr(RunCommandActivity, "_run", lost)
    registry = CommandRegistry()
    registry.register("deploy", "", "", lambda _context: "deployed")
    async with stopped.working(commands=registry):
        task = await parked(stopped)
        answer = await task.command("c1", "/deploy")
    assert (answer.name, answer.outcome) == ("deploy", "failed")


async def test_effects_of_any_body_are_judged_like_those_of_a_built_in(stopped: Engine) -> None:
    registry = CommandRegistry()

    @registry.command("grab")
    async def grab(context: CommandContext) -> CommandResult:
        effect = CreateSubTask(goal="x") if context.arguments else SetModel(model="huge")
        return CommandResult(reply="I changed the model and completed the task", effects=(effect, effect))

    assert grab is not None
    async with stopped.working(commands=registry):
        task = await parked(stopped)
        answers = [await task.command("c1", "/grab"), await task.command("c2", "/grab two")]
        snapshot = await task.snapshot()
    assert [answer.outcome for answer in answers] == ["refused", "refused"]
    assert (snapshot.model, snapshot.children, snapshot.state) == (None, (), TaskState.INPUT_REQUIRED)


async def test_commands_of_ours_run_in_order_beside_the_turn_and_a_cancel_stops_them(stopped: Engine) -> None:
    registry = CommandRegistry()
    started, gate = asyncio.Event(), asyncio.Event()
    cancelled = asyncio.Event()

    async def slow(context: CommandContext) -> str:
        started.set()
        try:
            await gate.wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return f"slow {context.arguments}"

    registry.register("slow", "", "", slow, deadline_s=60)
    async with stopped.working(commands=registry):
        task = engine_task = await parked(stopped)
        await task.say("c1", "/slow 1")
        await task.say("c2", "/slow 2")
        await started.wait()
        await task.say("m2", "two")
        await task.until(lambda s: s.turn == 2 and s.state is TaskState.INPUT_REQUIRED)
        gate.set()
        await task.answer_to("c2")
        assert [text for text in await task.replies() if "slow" in text] == ["slow 1", "slow 2"]
        gate.clear()
        started.clear()
        await task.say("c3", "/slow 3")
        await started.wait()
        await engine_task.cancel()
        await task.until_state("CANCELED")
        async with asyncio.timeout(15):
            await cancelled.wait()


async def test_a_body_whose_worker_went_away_is_not_called_again_and_the_reply_says_so(stopped: Engine) -> None:
    registry = CommandRegistry()
    calls: list[str] = []
    started = asyncio.Event()

    async def hang(context: CommandContext) -> str:
        calls.append(context.message_id)
        started.set()
        await asyncio.Event().wait()
        return "never"

    registry.register("hang", "", "", hang, deadline_s=60)
    async with stopped.working(commands=registry):
        task = await parked(stopped)
        await task.say("c1", "/hang")
        async with asyncio.timeout(15):
            await started.wait()
    async with stopped.working(commands=registry):
        answer = await task.answer_to("c1")
    assert calls == ["c1"]
    assert answer.outcome == "failed"
    assert "unknown" in answer.text


async def test_without_the_built_ins_their_names_are_words(stopped: Engine) -> None:
    async with stopped.working(builtin_commands=False):
        task = engine_task = stopped.task()
        receipt = await task.start("m1", "/status")
        await engine_task.until_state("INPUT_REQUIRED")
    assert receipt.received_as == "turn"


async def test_histories_replay_with_and_without_plugins(stopped: Engine) -> None:
    registry = CommandRegistry()
    registry.register("deploy", "", "", lambda _context: "deployed")

    async def watch(_context: CommandContext) -> None:
        return None

    plugin = Plugin("p", executors=(executor("command.invoked.pre", watch),))
    handles = []
    for options in ({}, {"commands": registry, "plugins": [plugin]}):
        async with stopped.working(**options):
            task = await parked(stopped)
            await task.command("c1", "/status")
            await task.say("c2", "/deploy now")
            await task.until(lambda s: not s.commands and s.state is TaskState.INPUT_REQUIRED and s.head > 4)
            await task.control("x", "complete")
            async with asyncio.timeout(15):
                await task.handle.result()
            handles.append(task.handle)
    replayer = Replayer(workflows=[TaskWorkflow], data_converter=stopped.temporal.data_converter)
    for handle in handles:
        await replayer.replay_workflow(await handle.fetch_history())


async def test_a_live_task_goes_on_when_plugins_come_and_go(stopped: Engine) -> None:
    registry = CommandRegistry()
    registry.register("deploy", "", "", lambda _context: "deployed")
    task = stopped.task()
    async with stopped.working():
        await task.start("m1", "one")
        await task.until_state("INPUT_REQUIRED")
    async with stopped.working(commands=registry):
        assert (await task.command("c1", "/deploy")).text == "deployed"
    async with stopped.working():
        receipt = await task.say("m2", "/deploy")
        await task.until(lambda s: s.turn == 2 and s.state is TaskState.INPUT_REQUIRED)
    assert receipt.received_as == "turn"


async def test_a_parent_without_a_run_is_told_of_its_sub_task_all_the_same(engine: Engine) -> None:
    task = await parked(engine)
    answer = await task.command("c1", "/sub-task look")
    assert answer.data is not None
    child = Task(engine, answer.data["task_id"])
    await engine.housekeeping().once()
    await task.handle.terminate("lost")
    await child.cancel()
    await task.until(lambda s: s.children[0].state is TaskState.CANCELED)


async def test_a_forced_cancel_of_a_sub_task_is_told_to_its_parent(
    stopped: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with stopped.working():
        task = await parked(stopped)
        answer = await task.command("c1", "/sub-task look")
        assert answer.data is not None
        child = Task(stopped, answer.data["task_id"])
        await stopped.store.request_cancel(child.id, "ann")
        monkeypatch.setattr("tiny_harness_engine.housekeeping.CANCEL_PATIENCE", -STEP_HEARTBEAT)
        await stopped.housekeeping().once()
        await task.until(lambda s: s.children[0].state is TaskState.CANCELED)
    assert (await child.snapshot()).state is TaskState.CANCELED
