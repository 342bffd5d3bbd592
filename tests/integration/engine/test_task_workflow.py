"""A task's life on a real Temporal and a real store."""

import asyncio
from datetime import timedelta

import pytest
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import Replayer

from tiny_harness import contracts
from tiny_harness.errors import (
    HarnessError,
    InvalidInput,
    ModelError,
    QueueFull,
    RoleNotPermitted,
    TaskEnded,
    TaskNotFound,
    Unavailable,
)
from tiny_harness.ext.stream import KEY
from tiny_harness.settings import Settings
from tiny_harness.states import TaskState
from tiny_harness.store import Commit, Committed
from tiny_harness_engine import calls
from tiny_harness_engine.core import lifecycle
from tiny_harness_engine.models import ModelReply, ToolCall
from tiny_harness_engine.workflows.task import TaskWorkflow

from .conftest import Engine


async def test_a_conversation_parks_after_each_reply_and_goes_on(engine: Engine) -> None:
    task = engine.task()
    first = await task.start("m1", "one")
    assert (first.seq, first.received_as, first.turn) == (1, "turn", 1)
    parked = await task.until_state("INPUT_REQUIRED")
    assert parked.sub_state == "awaiting-next-message"
    await task.say("m2", "two")
    await task.until(lambda s: s.turn == 2 and s.state is TaskState.INPUT_REQUIRED)
    assert await task.replies() == ["re: one", "re: two"]
    assert [m.text for m in engine.model.requests[1].messages] == ["one", "re: one", "two"]


async def test_a_turn_without_tools_is_two_events(engine: Engine) -> None:
    task = engine.task()
    await task.start("m1", "one")
    assert (await task.until_state("INPUT_REQUIRED")).head == 2


async def test_a_delegated_task_completes_by_itself(engine: Engine) -> None:
    task = engine.task()
    await task.start("m1", "one", lifecycle="delegated")
    await task.until_state("COMPLETED")
    assert await task.replies() == ["re: one"]


async def test_messages_to_a_busy_task_are_read_together_in_the_next_turn(engine: Engine) -> None:
    task = engine.task()
    engine.model.hold()
    await task.start("m1", "one")
    await engine.model.until_asked()
    receipts = [await task.say(f"m{n}", f"w{n}") for n in (2, 3)]
    assert [receipt.received_as for receipt in receipts] == ["queued", "queued"]
    engine.model.gate.set()
    await task.until(lambda s: s.turn == 2 and s.state is TaskState.INPUT_REQUIRED)
    assert [m.text for m in engine.model.requests[1].messages] == ["one", "re: one", "w2", "w3"]
    answered = [e["statusUpdate"]["metadata"][KEY].get("in_reply_to") for e in await task.log() if "statusUpdate" in e]
    assert [ids for ids in answered if ids] == [["m1"], ["m2", "m3"]]


async def test_a_repeat_gives_the_first_receipt_and_runs_nothing(engine: Engine) -> None:
    task = engine.task()
    first = await task.start("m1", "one")
    await task.until_state("INPUT_REQUIRED")
    again = await task.say("m1", "one")
    assert again.seq == first.seq
    assert again.received_as == "repeat"
    assert (await task.snapshot()).turn == 1
    assert len(engine.model.requests) == 1


async def test_other_content_under_a_used_id_is_refused(engine: Engine) -> None:
    task = engine.task()
    await task.start("m1", "one")
    with pytest.raises(InvalidInput) as caught:
        await task.say("m1", "something else")
    assert caught.value.kind == "reused_message_id"


async def test_refusals_leave_no_history_and_no_event(engine: Engine) -> None:
    task = engine.task()
    await task.start("m1", "one")
    head = (await task.until_state("INPUT_REQUIRED")).head
    with pytest.raises(TaskNotFound):
        await task.say("m2", "hi", sender="eve")
    with pytest.raises(InvalidInput):
        await task.say("m3", "  ")
    assert (await task.snapshot()).head == head


async def test_a_watcher_added_by_the_reporter_may_not_speak(engine: Engine) -> None:
    task = engine.task()
    await task.start("m1", "one")
    await task.until_state("INPUT_REQUIRED")
    people = {"kind": "task", "payload": {"participants": [{"id": "wat", "role": "watcher"}]}}
    await task.parts("m2", {"data": people, "mediaType": "application/vnd.tiny-harness.event+json"})
    with pytest.raises(RoleNotPermitted):
        await task.say("m3", "hi", sender="wat")


async def test_complete_cuts_a_running_turn_for_real(engine: Engine) -> None:
    task = engine.task()
    engine.model.hold()
    await task.start("m1", "one")
    await engine.model.until_asked()
    receipt = await task.control("c1", "complete")
    assert receipt.received_as == "control"
    done = await task.snapshot()
    assert (done.state, done.reading) == (TaskState.COMPLETED, ())
    async with asyncio.timeout(10):
        await task.handle.result()
    engine.model.gate.set()
    assert (await task.snapshot()).head == receipt.seq


async def test_interrupt_stops_the_turn_and_keeps_the_task(engine: Engine) -> None:
    task = engine.task()
    engine.model.hold()
    await task.start("m1", "one")
    await engine.model.until_asked()
    await task.control("i1", "interrupt")
    assert (await task.snapshot()).sub_state == "awaiting-next-message"
    engine.model.gate.set()
    await task.say("m2", "two")
    await task.until(lambda s: s.turn == 2 and s.state is TaskState.INPUT_REQUIRED)
    assert await task.replies() == ["re: two"]


async def test_an_interrupt_with_a_message_waiting_starts_the_next_turn_at_once(engine: Engine) -> None:
    task = engine.task()
    engine.model.hold()
    await task.start("m1", "one")
    await engine.model.until_asked()
    engine.model.asked.clear()
    await task.say("m2", "two")
    await task.control("i1", "interrupt")
    await engine.model.until_asked()
    assert [m.text for m in engine.model.requests[-1].messages] == ["one", "two"]
    engine.model.gate.set()
    await task.until(lambda s: s.turn == 2 and s.state is TaskState.INPUT_REQUIRED)
    assert await task.replies() == ["re: two"]


async def test_cancel_wins_over_a_running_turn(engine: Engine) -> None:
    task = engine.task()
    engine.model.hold()
    await task.start("m1", "one")
    await engine.model.until_asked()
    await task.cancel()
    await task.until_state("CANCELED")
    async with asyncio.timeout(10):
        await task.handle.result()


async def test_cancel_is_carried_out_when_no_engine_was_up(stopped: Engine) -> None:
    task = stopped.task()
    async with stopped.working():
        await task.start("m1", "one")
        await task.until_state("INPUT_REQUIRED")
    await task.cancel()
    async with stopped.working():
        await task.until_state("CANCELED")


async def test_complete_closes_the_run_and_the_task_takes_nothing_more(engine: Engine) -> None:
    task = engine.task()
    await task.start("m1", "one")
    await task.until_state("INPUT_REQUIRED")
    first = await task.control("c1", "complete")
    async with asyncio.timeout(10):
        await task.handle.result()
    assert (await task.snapshot()).head == first.seq


async def test_a_message_to_an_ended_task_names_its_state(engine: Engine) -> None:
    task = engine.task()
    engine.model.hold()
    await task.start("m1", "one")
    await engine.model.until_asked()
    done = await asyncio.gather(
        task.control("c1", "complete"), task.say("m2", "late"), task.say("m3", "later"), return_exceptions=True
    )
    ended = [outcome for outcome in done if isinstance(outcome, TaskEnded)]
    assert all(error.state == "COMPLETED" for error in ended)
    assert (await task.snapshot()).state is TaskState.COMPLETED


async def test_a_transient_model_failure_is_tried_again(engine: Engine) -> None:
    task = engine.task()
    engine.model.failures = [ModelError("busy", transient=True)]
    await task.start("m1", "one")
    await task.until_state("INPUT_REQUIRED")
    assert [request.attempt for request in engine.model.requests] == [1, 2]
    assert await task.replies() == ["re: one"]


async def test_a_model_that_fails_for_good_parks_with_the_reason_and_the_next_message_tries_again(
    engine: Engine,
) -> None:
    task = engine.task()
    engine.model.failures = [ModelError("no such model")]
    await task.start("m1", "one")
    await task.until_state("INPUT_REQUIRED")
    assert await task.replies() == ["the model failed: no such model"]
    await task.say("m2", "two")
    await task.until(lambda s: s.turn == 2 and s.state is TaskState.INPUT_REQUIRED)
    assert (await task.replies())[1] == "re: two"


async def test_a_model_that_asks_for_tools_without_end_is_stopped(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def ask_for_a_tool(*_: object) -> ModelReply:
        return ModelReply("", [ToolCall("c1", "refund", "{}")])

    monkeypatch.setattr("tiny_harness_engine.workflows.turns.MAX_STEPS", 3)
    monkeypatch.setattr(engine.model, "reply", ask_for_a_tool)
    task = engine.task()
    await task.start("m1", "one")
    await task.until_state("INPUT_REQUIRED")
    assert "3 times" in (await task.replies())[-1]


async def test_a_delegated_task_fails_with_the_reason(engine: Engine) -> None:
    task = engine.task()
    engine.model.failures = [ModelError("no such model")]
    await task.start("m1", "one", lifecycle="delegated")
    await task.until_state("FAILED")


async def test_a_first_message_that_is_refused_leaves_no_task_and_no_run(engine: Engine) -> None:
    task = engine.task()
    with pytest.raises(InvalidInput):
        await task.start("m1", " ")
    async with asyncio.timeout(10):
        await task.handle.result()
    assert await engine.store.task(task.id) is None


async def test_a_run_lost_with_temporals_database_is_rebuilt_from_the_store(stopped: Engine) -> None:
    task = stopped.task()
    async with stopped.working():
        await task.start("m1", "one")
        await task.until_state("INPUT_REQUIRED")
        await task.handle.terminate("as if the database had been deleted")
    async with stopped.working():
        await stopped.housekeeping().once()
        await task.say("m2", "two")
        await task.until(lambda s: s.turn == 2 and s.state is TaskState.INPUT_REQUIRED)


async def test_a_turn_that_was_running_when_everything_was_lost_is_answered(stopped: Engine) -> None:
    task = stopped.task()
    stopped.model.hold()
    async with stopped.working():
        await task.start("m1", "one")
        await stopped.model.until_asked()
        await task.handle.terminate("as if the database had been deleted")
    stopped.model.gate.set()
    async with stopped.working():
        await task.until_state("INPUT_REQUIRED")
    assert await task.replies() == ["re: one"]


async def test_a_recorded_step_is_not_asked_again(stopped: Engine) -> None:
    task = stopped.task()
    stopped.model.hold()
    async with stopped.working():
        await task.start("m1", "one")
        await stopped.model.until_asked()
        await stopped.store.save_step(task.id, 1, 1, '{"message_id":"r","text":"recorded"}')
        await task.handle.terminate("lost")
    asked = len(stopped.model.requests)
    async with stopped.working():
        await task.until_state("INPUT_REQUIRED")
    assert await task.replies() == ["recorded"]
    assert len(stopped.model.requests) == asked


async def test_a_long_conversation_rolls_over_and_stays_one_task(engine: Engine) -> None:
    task = engine.task()
    await task.start("m0", "w0")
    first_run = (await task.handle.describe()).run_id
    for n in range(1, 80):
        await task.until(lambda s, n=n: s.turn == n and s.state is TaskState.INPUT_REQUIRED)
        await task.say(f"m{n}", f"w{n}")
    await task.until(lambda s: s.turn == 80 and s.state is TaskState.INPUT_REQUIRED)
    seen = await task.handle.describe()
    assert seen.run_id != first_run
    assert seen.history_length < 260
    assert await task.replies() == [f"re: w{n}" for n in range(80)]
    # A repeat of an update that the new run does not know is still the same message.
    assert (await task.say("m3", "w3")).received_as == "repeat"


async def test_two_senders_cannot_use_one_message_id(engine: Engine) -> None:
    task = engine.task()
    await task.start("m1", "one")
    await task.until_state("INPUT_REQUIRED")
    people = {"kind": "task", "payload": {"participants": [{"id": "bob", "role": "reporter"}]}}
    await task.parts("p1", {"data": people, "mediaType": "application/vnd.tiny-harness.event+json"})
    with pytest.raises(InvalidInput) as caught:
        await task.say("m1", "one", sender="bob")
    assert caught.value.kind == "reused_message_id"


async def test_a_message_refused_by_a_full_mailbox_is_taken_later(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lifecycle, "MAX_MAILBOX", 1)
    task = engine.task()
    engine.model.hold()
    await task.start("m1", "one")
    await engine.model.until_asked()
    await task.say("m2", "two")
    with pytest.raises(QueueFull):
        await task.say("m3", "three")
    engine.model.gate.set()
    await task.until(lambda s: s.turn == 2 and s.state is TaskState.INPUT_REQUIRED)
    assert (await task.say("m3", "three")).received_as == "turn"


async def test_queued_messages_do_not_shorten_the_pause_before_the_next_attempt(engine: Engine) -> None:
    task = engine.task()
    engine.model.failures = [ModelError("busy", transient=True)]
    await task.start("m1", "one")
    await engine.model.until_asked()
    for number in range(2, 5):
        await task.say(f"m{number}", "more")
    await task.until(lambda s: s.turn == 2 and s.state is TaskState.INPUT_REQUIRED)
    assert (await task.replies())[0] == "re: one"


async def test_a_provider_is_asked_again_as_often_and_as_late_as_configured(stopped: Engine) -> None:
    document = {**stopped.settings.model_dump(), "retries": {"model": [0.01, 0.01]}}
    stopped.settings = Settings.model_validate(document)
    stopped.model.failures = [ModelError(f"busy {number}", transient=True) for number in range(4)]
    async with stopped.working():
        task = stopped.task()
        await task.start("m1", "one")
        await task.until_state("INPUT_REQUIRED")
    assert len(stopped.model.requests) == 3
    assert await task.replies() == ["the model failed: busy 2"]


async def test_a_provider_that_says_when_to_come_again_is_heeded(stopped: Engine) -> None:
    document = {**stopped.settings.model_dump(), "retries": {"model": [0.01]}}
    stopped.settings = Settings.model_validate(document)
    stopped.model.failures = [ModelError("slow down", transient=True, retry_after_s=1.0)]
    async with stopped.working():
        task = stopped.task()
        await task.start("m1", "one")
        await task.until_state("INPUT_REQUIRED")
        history = await task.handle.fetch_history()
    assert await task.replies() == ["re: one"]
    timers = [
        event.timer_started_event_attributes.start_to_fire_timeout.ToTimedelta()
        for event in history.events
        if event.HasField("timer_started_event_attributes")
    ]
    assert any(timedelta(seconds=1) <= timer <= timedelta(seconds=1.25) for timer in timers), timers


async def test_a_bug_in_a_provider_is_tried_with_pauses_and_told(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object) -> None:
        engine.model.requests.append(None)  # pyright: ignore[reportArgumentType] - only counted
        raise KeyError("planted")

    monkeypatch.setattr(engine.model, "reply", broken)
    monkeypatch.setattr(calls, "MODEL_BACKOFF", (timedelta(milliseconds=1),) * 3)
    task = engine.task()
    await task.start("m1", "one")
    await task.until_state("INPUT_REQUIRED")
    assert len(engine.model.requests) == calls.MODEL_ATTEMPTS
    assert await task.replies() == [str(HarnessError())]


async def test_an_interrupt_whose_commit_is_slow_cuts_the_turn_all_the_same(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = engine.task()
    engine.model.hold()
    await task.start("m1", "one")
    await engine.model.until_asked()
    real, tries = engine.store.commit, list[str]()

    async def written_but_not_answered(commit: Commit) -> Committed:
        done = await real(commit)
        tries.append(commit.cause)
        if len(tries) == 1:
            raise Unavailable("planted: it is in, but nobody was told")
        return done

    monkeypatch.setattr(engine.store, "commit", written_but_not_answered)
    assert (await task.control("i1", "interrupt")).received_as in ("control", "repeat")
    engine.model.asked.clear()
    await task.say("m2", "two")
    await engine.model.until_asked()
    engine.model.gate.set()
    await task.until(lambda s: s.turn == 2 and s.state is TaskState.INPUT_REQUIRED)
    assert await task.replies() == ["re: two"]


async def test_a_stopped_worker_gives_its_turn_to_the_next_one(stopped: Engine) -> None:
    task = stopped.task()
    stopped.model.hold()
    async with stopped.working():
        await task.start("m1", "one")
        await stopped.model.until_asked()
    stopped.model.gate.set()
    async with stopped.working():
        await task.until_state("INPUT_REQUIRED")
    assert await task.replies() == ["re: one"]


async def test_housekeeping_goes_on_when_one_task_cannot_be_reached(
    stopped: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = [stopped.task() for _ in range(3)]
    stopped.model.hold()
    async with stopped.working():
        for number, task in enumerate(tasks):
            await task.start(f"m{number}", "one")
            await task.handle.terminate("lost")
    start = stopped.temporal.start_workflow
    unreachable, *others = tasks
    refused: list[str] = []

    async def flaky(*arguments: object, **options: object) -> object:
        if options["id"] == unreachable.handle.id:
            refused.append(unreachable.id)
            raise RPCError("planted", RPCStatusCode.UNAVAILABLE, b"")
        return await start(*arguments, **options)  # pyright: ignore[reportCallIssue, reportArgumentType]

    monkeypatch.setattr(stopped.temporal, "start_workflow", flaky)
    stopped.model.gate.set()
    async with stopped.working():
        for task in others:
            await task.until_state("INPUT_REQUIRED")
    assert refused


async def test_every_history_of_a_lively_task_replays(engine: Engine) -> None:
    task = engine.task()
    engine.model.hold()
    await task.start("m1", "one")
    await engine.model.until_asked()
    await task.say("m2", "two")
    await task.control("i1", "interrupt")
    engine.model.failures = [ModelError("busy", transient=True)]
    engine.model.gate.set()
    await task.until(lambda s: s.turn == 2 and s.state is TaskState.INPUT_REQUIRED)
    await task.handle.signal(contracts.RECONCILE)
    await task.say("m3", "three")
    await task.until(lambda s: s.turn == 3 and s.state is TaskState.INPUT_REQUIRED)
    await task.control("c1", "complete")
    async with asyncio.timeout(10):
        await task.handle.result()
    replayer = Replayer(workflows=[TaskWorkflow], data_converter=engine.temporal.data_converter)
    await replayer.replay_workflow(await task.handle.fetch_history())
