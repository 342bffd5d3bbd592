"""The core loop on a real engine: steps with tools, plans, questions, sub-tasks (spec/capability-tasks-and-plans)."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from temporalio.worker import Replayer

from tiny_harness.envelope import answer_part
from tiny_harness.errors import AlreadyAnswered, HookAbort, RoleNotPermitted
from tiny_harness.ext import status, stream
from tiny_harness.ext.task import KEY as TASK_KEY
from tiny_harness.hooks import Executor, call_function
from tiny_harness.hooks.contexts import BriefContext, HelpContext, PlanContext, ToolContext
from tiny_harness.hooks.executor import HookFunction
from tiny_harness.plugins import Plugin
from tiny_harness.settings import Settings
from tiny_harness.states import (
    AWAITING_ANSWER,
    AWAITING_APPROVAL,
    AWAITING_BUDGET,
    AWAITING_NEXT_MESSAGE,
    TaskState,
)
from tiny_harness_engine.models import ModelReply, ModelRequest, ModelUsage, ToolCall
from tiny_harness_engine.records import CallResult
from tiny_harness_engine.workflows.task import TaskWorkflow

from .conftest import PATIENCE_S, Engine, Task

Says = str | list[tuple[str, dict[str, Any]]]
"""What a model answers: words, or calls by name with their arguments."""


class Story:
    """A model that answers one thing after another, by task, and keeps what it was asked."""

    def __init__(self, *says: Says) -> None:
        self.says = list(says)
        self.requests: list[ModelRequest] = []

    async def reply(self, request: ModelRequest, on_text: Callable[[str], None]) -> ModelReply:
        del on_text
        self.requests.append(request)
        said = self.says.pop(0) if self.says else "done"
        if isinstance(said, str):
            return ModelReply(said)
        number = len(self.requests)
        calls = [ToolCall(f"c{number}.{n}", name, json.dumps(args)) for n, (name, args) in enumerate(said)]
        return ModelReply("", calls)

    async def close(self) -> None:
        return None

    def heard(self) -> list[str]:
        """What the last request showed, one line per message."""
        return [f"{message.role}: {message.text}" for message in self.requests[-1].messages]


class Bench:
    """Tools that a test holds in its hands, instead of MCP servers."""

    def __init__(self) -> None:
        self.called: list[str] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.reached = asyncio.Event()

    async def settle(self) -> None:
        """They are there at once."""

    def tools(self) -> Sequence[Any]:
        return (Held("t/s.look", is_read_only=True), Held("t/s.refund"), Held("t/s.set", is_idempotent=True))

    async def call(self, name: str, arguments: str, schema_hash: str | None) -> CallResult:
        assert schema_hash == "h"
        self.called.append(f"{name} {arguments}")
        self.reached.set()
        await self.gate.wait()
        return CallResult(text=f"{name} says yes")

    def health(self) -> list[dict[str, Any]]:
        return []


class Held:
    """A tool of the bench."""

    def __init__(self, name: str, *, is_read_only: bool = False, is_idempotent: bool = False) -> None:
        self.name = name
        self.description = "a tool"
        self.parameters = {"type": "object"}
        self.is_read_only = is_read_only
        self.is_idempotent = is_idempotent or is_read_only
        self.schema_hash = "h"


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    """Tools for the engine that starts next."""
    from contextlib import asynccontextmanager

    bench = Bench()

    @asynccontextmanager
    async def open_bench(*_: object) -> AsyncGenerator[Bench]:
        yield bench

    monkeypatch.setattr("tiny_harness_engine.worker.open_servers", open_bench)
    return bench


def policy(function: HookFunction) -> Plugin:
    return Plugin("p", executors=(Executor("p/it", "tool.invoked", "pre", call_function(function)),))


async def begin(engine: Engine, story: Story, text: str = "go", state: str = "INPUT_REQUIRED") -> Task:
    engine.model = story  # pyright: ignore[reportAttributeAccessIssue]
    task = engine.task()
    await task.start("m1", text)
    await task.until_state(state)
    return task


def steps(log: list[dict[str, Any]]) -> list[list[str]]:
    """The tools of each step, in order, a failed one marked."""
    data = [event.get("statusUpdate", {}).get("metadata", {}).get(stream.KEY, {}) for event in log]
    return [
        [use["name"] + ("!" if use["is_error"] else "") for use in each["tool_calls"]]
        for each in data
        if "tool_calls" in each
    ]


async def test_a_turn_goes_on_step_by_step_until_the_model_asks_for_nothing(stopped: Engine, bench: Bench) -> None:
    story = Story([("t/s.look", {"a": 1}), ("t/s.look", {"a": 2})], [("t/s.refund", {})], "all done")
    stopped.model = story  # pyright: ignore[reportAttributeAccessIssue]
    async with stopped.working():
        task = await begin(stopped, story)
    assert sorted(bench.called) == ['t/s.look {"a": 1}', 't/s.look {"a": 2}', "t/s.refund {}"]
    assert steps(await task.log()) == [["t/s.look", "t/s.look"], ["t/s.refund"]]
    assert (await task.replies())[-1] == "all done"
    assert story.heard() == [
        "user: go",
        "assistant: ",
        "tool: t/s.look says yes",
        "tool: t/s.look says yes",
        "assistant: ",
        "tool: t/s.refund says yes",
    ]
    assert (await task.snapshot()).usage.calls == 3


async def test_reading_calls_run_side_by_side_and_others_one_by_one(stopped: Engine, bench: Bench) -> None:
    story = Story([("t/s.look", {"n": n}) for n in range(3)])
    stopped.model = story  # pyright: ignore[reportAttributeAccessIssue]
    bench.gate.clear()
    async with stopped.working():
        task = stopped.task()
        await task.start("m1", "go")
        async with asyncio.timeout(PATIENCE_S):
            while len(bench.called) < 3:
                bench.reached.clear()
                await bench.reached.wait()
        bench.gate.set()
        await task.until_state("INPUT_REQUIRED")


async def test_unknown_tools_and_wrong_arguments_are_results_for_the_model(stopped: Engine, bench: Bench) -> None:
    story = Story([("no.such", {}), ("complete_step", {"output": 7}), ("complete_step", {"output": "x"})], "sorry")
    stopped.model = story  # pyright: ignore[reportAttributeAccessIssue]
    async with stopped.working():
        task = await begin(stopped, story)
    assert steps(await task.log()) == [["no.such!", "complete_step!", "complete_step!"]]
    assert "There is no tool 'no.such'" in story.heard()[2]
    assert bench.called == []


async def test_a_plan_is_made_persisted_shown_and_done(stopped: Engine, bench: Bench) -> None:
    plan = {"steps": [{"id": "a", "name": "A"}, {"id": "b", "name": "B", "depends_on": ["a"]}]}
    cycle = {"steps": [{"id": "a", "name": "A", "depends_on": ["b"]}, {"id": "b", "name": "B", "depends_on": ["a"]}]}
    story = Story(
        [("create_plan", cycle)], [("create_plan", plan)], [("complete_step", {"output": "found"})], "half way"
    )
    stopped.model = story  # pyright: ignore[reportAttributeAccessIssue]
    async with stopped.working():
        task = await begin(stopped, story)
        answer = await task.command("c1", "/status")
    kept = (await task.snapshot()).plan
    assert kept is not None
    assert [(step.id, step.status, step.output) for step in kept.steps] == [
        ("a", "done", "found"),
        ("b", "active", None),
    ]
    assert answer.data is not None
    assert answer.data["plan"] == {"done": 1, "total": 2}
    assert "wait for each other" in json.dumps([m.text for m in story.requests[1].messages])
    assert '"found"' in story.requests[-1].system
    told = [event["statusUpdate"]["metadata"] for event in await task.log() if "statusUpdate" in event]
    assert [TASK_KEY in metadata for metadata in told] == [False, True, True, False, False, False]


async def test_a_question_parks_the_task_and_the_answer_goes_on(stopped: Engine, bench: Bench) -> None:
    story = Story([("ask_participant", {"question": "Which order?", "choices": ["1", "2"]})], "thanks")
    stopped.model = story  # pyright: ignore[reportAttributeAccessIssue]
    async with stopped.working():
        task = await begin(stopped, story)
        asked = (await task.log())[-1]["statusUpdate"]
        snapshot = await task.snapshot()
        await task.say("m2", "order 2")
        await task.until(lambda s: s.turn == 2 and s.state is TaskState.INPUT_REQUIRED)
    assert snapshot.sub_state == AWAITING_ANSWER
    assert asked["status"]["message"]["parts"][0]["text"] == "Which order?"
    assert asked["metadata"][status.KEY]["choices"] == ["1", "2"]
    assert asked["metadata"][stream.KEY]["in_reply_to"] == ["m1"]
    assert story.heard()[-2:] == ["assistant: Which order?", "user: order 2"]
    assert (await task.snapshot()).sub_state == AWAITING_NEXT_MESSAGE


async def test_a_message_that_came_before_a_question_is_no_answer_to_it(stopped: Engine, bench: Bench) -> None:
    story = Story([("t/s.look", {}), ("ask_participant", {"question": "Which?"})], "thanks")
    stopped.model = story  # pyright: ignore[reportAttributeAccessIssue]
    bench.gate.clear()
    async with stopped.working():
        task = stopped.task()
        await task.start("m1", "go")
        async with asyncio.timeout(PATIENCE_S):
            await bench.reached.wait()
        await task.say("m2", "by the way")
        bench.gate.set()
        parked = await task.until(lambda s: s.sub_state == AWAITING_ANSWER)
        await task.say("m3", "this one")
        await task.until(lambda s: s.turn == 2 and s.state is TaskState.INPUT_REQUIRED)
    assert [message.message_id for message in parked.mailbox] == ["m2"]
    assert [line for line in story.heard() if line.startswith("user")] == [
        "user: go",
        "user: this one",
        "user: by the way",
    ]


async def test_messages_to_a_busy_task_are_read_by_its_next_step(stopped: Engine, bench: Bench) -> None:
    story = Story([("t/s.look", {})], "both read")
    stopped.model = story  # pyright: ignore[reportAttributeAccessIssue]
    bench.gate.clear()
    async with stopped.working():
        task = stopped.task()
        await task.start("m1", "one")
        async with asyncio.timeout(PATIENCE_S):
            await bench.reached.wait()
        await task.say("m2", "two")
        bench.gate.set()
        await task.until_state("INPUT_REQUIRED")
    assert story.heard() == ["user: one", "assistant: ", "tool: t/s.look says yes", "user: two"]
    ended = (await task.log())[-1]["statusUpdate"]["metadata"][stream.KEY]
    assert ended["in_reply_to"] == ["m1", "m2"]


@pytest.mark.parametrize(("value", "word"), [("approve", "says yes"), ("refuse", "refused")])
async def test_a_call_that_needs_a_person_waits_for_one_and_exactly_that_call_is_made_or_not(
    stopped: Engine, bench: Bench, value: str, word: str
) -> None:
    async def ask(context: ToolContext) -> dict[str, Any] | None:
        return {"ask": "It costs money."} if context.tool.endswith("refund") else None

    story = Story([("t/s.look", {}), ("t/s.refund", {"n": 1}), ("t/s.set", {})], "done")
    stopped.model = story  # pyright: ignore[reportAttributeAccessIssue]
    async with stopped.working(plugins=[policy(ask)]):
        task = await begin(stopped, story)
        asked = (await task.log())[-1]["statusUpdate"]
        request_id = asked["metadata"][status.KEY]["request_id"]
        assert asked["metadata"][status.KEY]["sub_state"] == AWAITING_APPROVAL
        assert not any("refund" in call for call in bench.called)
        await task.command("c1", "/invite bob assignee")
        with pytest.raises(RoleNotPermitted):
            await task.parts("a0", answer_part(request_id, value), sender="bob")
        with pytest.raises(AlreadyAnswered):
            await task.parts("a1", answer_part("other", value))
        await task.parts("a2", answer_part(request_id, value))
        await task.until(lambda s: s.sub_state == AWAITING_NEXT_MESSAGE)
        with pytest.raises(AlreadyAnswered):
            await task.parts("a3", answer_part(request_id, value))
    assert [call.split()[0] for call in bench.called].count("t/s.refund") == (1 if value == "approve" else 0)
    assert [call.split()[0] for call in bench.called].count("t/s.look") == 1
    assert word in story.heard()[3]
    assert "says yes" in story.heard()[4]


async def test_words_refuse_a_call_for_their_reason_and_are_read_by_the_next_step(
    stopped: Engine, bench: Bench
) -> None:
    async def ask(_context: ToolContext) -> dict[str, Any]:
        return {"ask": "Really?"}

    story = Story([("t/s.refund", {})], "understood")
    stopped.model = story  # pyright: ignore[reportAttributeAccessIssue]
    async with stopped.working(plugins=[policy(ask)]):
        task = await begin(stopped, story)
        await task.say("m2", "no, look again first")
        await task.until(lambda s: s.sub_state == AWAITING_NEXT_MESSAGE)
    assert bench.called == []
    assert "no, look again first" in story.heard()[-2]
    assert story.heard()[-1] == "user: no, look again first"


async def test_an_interrupt_and_a_cancel_end_a_paused_turn(stopped: Engine, bench: Bench) -> None:
    async def ask(_context: ToolContext) -> dict[str, Any]:
        return {"ask": "Really?"}

    story = Story([("t/s.refund", {})], [("t/s.refund", {})])
    stopped.model = story  # pyright: ignore[reportAttributeAccessIssue]
    async with stopped.working(plugins=[policy(ask)]):
        task = await begin(stopped, story)
        await task.control("i1", "interrupt")
        assert (await task.until(lambda s: s.sub_state == AWAITING_NEXT_MESSAGE)).question is None
        await task.say("m2", "again")
        await task.until(lambda s: s.sub_state == AWAITING_APPROVAL)
        await task.cancel()
        await task.until_state("CANCELED")
    assert bench.called == []


async def test_a_vetoed_call_is_a_result_for_the_model(stopped: Engine, bench: Bench) -> None:
    async def veto(_context: ToolContext) -> None:
        raise HookAbort("not on Sundays")

    story = Story([("t/s.refund", {})], "ok")
    stopped.model = story  # pyright: ignore[reportAttributeAccessIssue]
    async with stopped.working(plugins=[policy(veto)]):
        await begin(stopped, story)
    assert bench.called == []
    assert "not on Sundays" in story.heard()[-1]


async def test_a_call_that_may_not_be_made_twice_is_asked_about_after_its_worker_died(
    stopped: Engine, bench: Bench
) -> None:
    story = Story([("t/s.refund", {"n": 1})], "thank you")
    stopped.model = story  # pyright: ignore[reportAttributeAccessIssue]
    bench.gate.clear()
    async with stopped.working():
        task = stopped.task()
        await task.start("m1", "go")
        async with asyncio.timeout(PATIENCE_S):
            await bench.reached.wait()
    bench.gate.set()
    async with stopped.working():
        await task.until(lambda s: s.sub_state == AWAITING_ANSWER)
        await task.say("m2", "yes, it did")
        await task.until(lambda s: s.sub_state == AWAITING_NEXT_MESSAGE)
    assert len(bench.called) == 1
    assert "Did the call take effect" in (await task.replies())[-2]
    assert story.heard()[-1] == "user: yes, it did"


async def test_an_idempotent_call_is_made_again_after_its_worker_died(stopped: Engine, bench: Bench) -> None:
    story = Story([("t/s.set", {"n": 1})], "set")
    stopped.model = story  # pyright: ignore[reportAttributeAccessIssue]
    bench.gate.clear()
    async with stopped.working():
        task = stopped.task()
        await task.start("m1", "go")
        async with asyncio.timeout(PATIENCE_S):
            await bench.reached.wait()
    bench.gate.set()
    async with stopped.working():
        await task.until_state("INPUT_REQUIRED")
    assert len(bench.called) == 2
    assert (await task.replies())[-1] == "set"


async def test_a_model_never_raises_rights_by_itself(stopped: Engine, bench: Bench) -> None:
    story = Story([("set_participant_role", {"participant": "eve", "role": "reporter"})], "as you say")
    stopped.model = story  # pyright: ignore[reportAttributeAccessIssue]
    async with stopped.working():
        task = await begin(stopped, story)
        parked = await task.snapshot()
        assert parked.question is not None
        await task.parts("a1", answer_part(parked.question.request_id, "approve"))
        after = await task.until(lambda s: s.sub_state == AWAITING_NEXT_MESSAGE)
    assert "eve" not in [person.id for person in parked.participants]
    assert ("eve", "reporter") in [(person.id, person.role) for person in after.participants]


async def test_every_history_with_tools_questions_and_sub_tasks_replays(stopped: Engine, bench: Bench) -> None:
    async def ask(context: ToolContext) -> dict[str, Any] | None:
        return {"ask": "Really?"} if context.tool.endswith("refund") else None

    story = Story([("t/s.look", {})], [("t/s.refund", {})], [("ask_participant", {"question": "And?"})], "done")
    stopped.model = story  # pyright: ignore[reportAttributeAccessIssue]
    async with stopped.working(plugins=[policy(ask)]):
        task = await begin(stopped, story)
        parked = await task.snapshot()
        assert parked.question is not None
        await task.parts("a1", answer_part(parked.question.request_id, "approve"))
        await task.until(lambda s: s.sub_state == AWAITING_ANSWER)
        await task.say("m2", "that was all")
        await task.until(lambda s: s.sub_state == AWAITING_NEXT_MESSAGE)
        await task.control("x", "complete")
        async with asyncio.timeout(PATIENCE_S):
            await task.handle.result()
    replayer = Replayer(workflows=[TaskWorkflow], data_converter=stopped.temporal.data_converter)
    await replayer.replay_workflow(await task.handle.fetch_history())


class Troupe:
    """A model that plays several tasks: what it says is chosen by the first message that it is shown."""

    def __init__(self, **stories: Sequence[Says]) -> None:
        self.stories = {name: Story(*says) for name, says in stories.items()}

    async def reply(self, request: ModelRequest, on_text: Callable[[str], None]) -> ModelReply:
        first = request.messages[0].text
        return await next(story for name, story in self.stories.items() if name in first).reply(request, on_text)

    async def close(self) -> None:
        return None


async def test_sub_tasks_work_by_themselves_and_their_results_are_read(stopped: Engine, bench: Bench) -> None:
    spawn = [("spawn_subtask", {"goal": "first child"}), ("spawn_subtask", {"goal": "second child"})]
    troupe = Troupe(parent=[spawn, "started", "one more", "all read"], first=["result A"], second=["result B"])
    stopped.model = troupe  # pyright: ignore[reportAttributeAccessIssue]
    async with stopped.working():
        task = stopped.task()
        await task.start("m1", "parent")
        done = await task.until(
            lambda s: s.state is TaskState.INPUT_REQUIRED and len(s.children) == 2 and not s.unresolved
        )
        heard = "\n".join(line for story in [troupe.stories["parent"]] for line in story.heard())
    assert [child.state for child in done.children] == [TaskState.COMPLETED, TaskState.COMPLETED]
    assert "result A" in heard
    assert "result B" in heard


async def test_a_delegated_task_waits_for_its_sub_tasks_and_reads_them_before_it_ends(
    stopped: Engine, bench: Bench
) -> None:
    troupe = Troupe(parent=[[("spawn_subtask", {"goal": "child"})], "waiting", "the child says so"], child=["it is so"])
    stopped.model = troupe  # pyright: ignore[reportAttributeAccessIssue]
    async with stopped.working():
        task = stopped.task()
        await task.start("m1", "parent", lifecycle="delegated")
        await task.until_state("COMPLETED")
    assert (await task.replies())[-1] == "the child says so"
    assert "it is so" in "\n".join(troupe.stories["parent"].heard())


async def test_a_spawned_goal_that_looks_like_a_command_is_words(stopped: Engine, bench: Bench) -> None:
    troupe = Troupe(parent=[[("spawn_subtask", {"goal": "/model big"})], "ok", "read"], model=["just words"])
    stopped.model = troupe  # pyright: ignore[reportAttributeAccessIssue]
    async with stopped.working():
        task = stopped.task()
        await task.start("m1", "parent")
        done = await task.until(lambda s: bool(s.children) and not s.unresolved and s.state.is_interrupted)
    record = await stopped.store.task(done.children[0].task_id)
    assert record is not None
    assert (record.snapshot.model, record.snapshot.state) == (None, TaskState.COMPLETED)


async def test_cancelling_a_parent_stops_its_sub_tasks(stopped: Engine, bench: Bench) -> None:
    troupe = Troupe(parent=[[("spawn_subtask", {"goal": "child"})], "started"], child=[[("t/s.look", {})], "never"])
    stopped.model = troupe  # pyright: ignore[reportAttributeAccessIssue]
    bench.gate.clear()
    async with stopped.working():
        task = stopped.task()
        await task.start("m1", "parent")
        async with asyncio.timeout(PATIENCE_S):
            await bench.reached.wait()
        child = Task(stopped, (await task.until(lambda s: bool(s.children))).children[0].task_id)
        await task.cancel()
        await task.until_state("CANCELED")
        await child.until_state("CANCELED")


async def test_a_task_for_a_participant_ends_with_their_reply(stopped: Engine, bench: Bench) -> None:
    give = [("create_task_for_participant", {"participant": "bob", "goal": "sign the form"})]
    story = Story(give, "asked bob", "bob says done")
    stopped.model = story  # pyright: ignore[reportAttributeAccessIssue]
    async with stopped.working():
        task = stopped.task()
        await task.start("c1", "/invite bob assignee")
        await task.answer_to("c1")
        await task.say("m1", "go")
        asked = await task.until(lambda s: bool(s.children) and s.state is TaskState.INPUT_REQUIRED)
        child = Task(stopped, asked.children[0].task_id)
        await stopped.housekeeping().once()
        assert (await child.snapshot()).sub_state == AWAITING_ANSWER
        await child.say("b1", "signed", sender="bob")
        await child.until_state("COMPLETED")
        await task.until(lambda s: s.turn == 2 and s.state is TaskState.INPUT_REQUIRED)
    assert "signed" in story.heard()[-1]
    assert (await task.replies())[-1] == "bob says done"


async def test_a_long_conversation_is_summed_up_and_goes_on(stopped: Engine, bench: Bench) -> None:
    settings = stopped.settings.model_dump()
    settings["scripted"] = {**settings["scripted"], "context_window_tokens": 4_000}
    settings["openai"] = {**settings["openai"], "context_window_tokens": 4_000}
    stopped.settings = Settings.model_validate(settings)
    story = Story(*(f"answer {n}: " + "word " * 400 for n in range(4)), "a summary", "and on", "and on")
    stopped.model = story  # pyright: ignore[reportAttributeAccessIssue]
    async with stopped.working():
        task = await begin(stopped, story, "the first question")
        for number in range(2, 7):
            await task.say(f"m{number}", f"question {number}")
            await task.until(lambda s, turn=number: s.turn == turn and s.state is TaskState.INPUT_REQUIRED)
    asked = [request for request in story.requests if "older part" in request.system]
    assert len(asked) >= 1
    assert "the first question" in asked[0].messages[0].text
    assert "a summary" in story.heard()[0]
    assert "the first question" not in "\n".join(story.heard())
    assert story.heard()[-1] == "user: question 6"


async def test_a_spent_budget_pauses_and_goes_on_when_the_reporter_says_so(stopped: Engine, bench: Bench) -> None:
    budget = {"budget": {"tokens": 10}}
    stopped.settings = Settings.model_validate({**stopped.settings.model_dump(), "tasks": budget})

    class Costly(Story):
        async def reply(self, request: ModelRequest, on_text: Callable[[str], None]) -> ModelReply:
            said = await super().reply(request, on_text)
            return replace(said, usage=ModelUsage(6, 6))

    story = Costly("one", "two", "three")
    stopped.model = story  # pyright: ignore[reportAttributeAccessIssue]
    async with stopped.working():
        task = await begin(stopped, story)
        await task.say("m2", "more")
        paused = await task.until(lambda s: s.sub_state == AWAITING_BUDGET)
        assert len(story.requests) == 1
        assert paused.question is not None
        await task.parts("a1", answer_part(paused.question.request_id, "continue"))
        await task.until(lambda s: s.sub_state == AWAITING_NEXT_MESSAGE)
    assert (await task.replies())[-1] == "two"
    assert (await task.snapshot()).usage.input_tokens == 12


def at(point: str, function: HookFunction) -> Plugin:
    operation, _, phase = point.rpartition(".")
    return Plugin("p", executors=(Executor("p/it", operation, phase, call_function(function)),))  # pyright: ignore[reportArgumentType]


async def test_a_hook_replaces_a_plan_before_it_is_made(stopped: Engine, bench: Bench) -> None:
    async def shorten(context: PlanContext) -> dict[str, Any]:
        assert [step["id"] for step in context.plan["steps"]] == ["a", "b"]
        return {"plan": {"steps": context.plan["steps"][:1]}}

    steps_of_plan = [{"id": "a", "name": "A"}, {"id": "b", "name": "B", "depends_on": ["a"]}]
    story = Story([("create_plan", {"steps": steps_of_plan})], "planned")
    stopped.model = story  # pyright: ignore[reportAttributeAccessIssue]
    async with stopped.working(plugins=[at("plan.created.pre", shorten)]):
        task = await begin(stopped, story)
    found = (await task.snapshot()).plan
    assert found is not None
    assert [step.id for step in found.steps] == ["a"]
    assert "0 of 1 steps are done" in story.heard()[-1]


async def test_a_hook_refuses_a_sub_task_with_its_reason(stopped: Engine, bench: Bench) -> None:
    async def refuse(context: BriefContext) -> None:
        raise HookAbort(f"nobody may {context.brief['goal']}")

    story = Story([("spawn_subtask", {"goal": "steal"})], "sorry")
    stopped.model = story  # pyright: ignore[reportAttributeAccessIssue]
    async with stopped.working(plugins=[at("subtask.spawned.pre", refuse)]):
        task = await begin(stopped, story)
    assert (await task.snapshot()).children == ()
    assert "nobody may steal" in story.heard()[-1]
    assert steps(await task.log()) == [["spawn_subtask!"]]


async def test_a_hook_decides_whom_to_ask_for_help(stopped: Engine, bench: Bench) -> None:
    async def rather_ask(context: HelpContext) -> dict[str, Any]:
        assert context.decision["tool"] == "create_task_for_participant"
        question = {"question": f"Will you {context.decision['arguments']['goal']}?"}
        return {"decision": {"tool": "ask_participant", "arguments": question}}

    story = Story([("create_task_for_participant", {"participant": "ann", "goal": "sign it"})], "never")
    stopped.model = story  # pyright: ignore[reportAttributeAccessIssue]
    async with stopped.working(plugins=[at("help.decided.pre", rather_ask)]):
        task = await begin(stopped, story)
        assert (await task.snapshot()).sub_state == AWAITING_ANSWER
    assert (await task.replies())[-1] == "Will you sign it?"


async def test_a_policy_on_tools_sees_the_intrinsic_ones_and_lets_a_person_decide(
    stopped: Engine, bench: Bench
) -> None:
    async def ask(context: ToolContext) -> dict[str, Any] | None:
        return {"ask": "A plan?"} if context.tool == "create_plan" and not context.approved_by_a_person else None

    plan = {"steps": [{"id": "a", "name": "A"}]}
    story = Story([("create_plan", plan)], [("create_plan", plan)], "done")
    stopped.model = story  # pyright: ignore[reportAttributeAccessIssue]
    async with stopped.working(plugins=[policy(ask)]):
        task = await begin(stopped, story)
        parked = await task.snapshot()
        assert parked.question is not None
        await task.parts("a1", answer_part(parked.question.request_id, "refuse"))
        again = await task.until(lambda s: s.question is not None and s.question != parked.question)
        assert again.plan is None
        assert again.question is not None
        await task.parts("a2", answer_part(again.question.request_id, "approve"))
        await task.until(lambda s: s.sub_state == AWAITING_NEXT_MESSAGE)
    assert (await task.snapshot()).plan is not None
    assert steps(await task.log()) == [["create_plan!"], ["create_plan"]]


async def test_what_a_hook_makes_of_a_plan_is_checked(stopped: Engine, bench: Bench) -> None:
    async def spoil(context: PlanContext) -> dict[str, Any]:
        return {"plan": {"steps": [{"id": "a", "name": "A", "depends_on": ["a"]}]}}

    story = Story([("create_plan", {"steps": [{"id": "a", "name": "A"}]})], "sorry")
    stopped.model = story  # pyright: ignore[reportAttributeAccessIssue]
    async with stopped.working(plugins=[at("plan.created.pre", spoil)]):
        task = await begin(stopped, story)
    assert (await task.snapshot()).plan is None
    assert "a needs a" in story.heard()[-1]


async def test_status_and_the_report_say_how_tool_servers_are(stopped: Engine, bench: Bench) -> None:
    bench.health = lambda: [{"name": "shop/orders", "state": "down"}]
    async with stopped.working():
        task = await begin(stopped, Story("hello"))
        answer = await task.command("c1", "/status")
        [report] = await stopped.store.engines(timedelta(hours=1))
    assert "shop/orders: down" in answer.text
    assert json.loads(report.health)["tools"] == [{"name": "shop/orders", "state": "down"}]


async def test_a_question_is_told_with_every_event_until_it_is_answered(stopped: Engine, bench: Bench) -> None:
    async def ask(context: ToolContext) -> dict[str, Any] | None:
        return {"ask": "Really?"}

    story = Story([("t/s.refund", {})], "done")
    stopped.model = story  # pyright: ignore[reportAttributeAccessIssue]
    async with stopped.working(plugins=[policy(ask)]):
        task = await begin(stopped, story)
        await task.command("c1", "/status")
        parked = await task.snapshot()
        later = (await task.log())[-1]["statusUpdate"]["metadata"][status.KEY]
    assert parked.question is not None
    assert later == {
        "sub_state": AWAITING_APPROVAL,
        "request_id": parked.question.request_id,
        "choices": ["approve", "refuse"],
    }
