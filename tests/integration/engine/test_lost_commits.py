"""The store has lost its last commits, by a failover or a restored copy: no number is used twice, and tasks go on."""

from tests.integration.engine.conftest import Engine, Task
from tests.stores import execute
from tiny_harness import contracts
from tiny_harness.errors import ModelError
from tiny_harness.repair import reconcile_all, repair_task

TABLES = ("events", "steps", "task_participants", "tasks")


class Copy:
    """A copy of one task's rows, which can be put back."""

    def __init__(self, engine: Engine, task: Task) -> None:
        self._settings = engine.settings
        self._task = task
        self.head = 0

    async def take(self) -> "Copy":
        for table in TABLES:
            await execute(
                self._settings, f"create table copy_{table} as select * from {table} where task_id = '{self._task.id}'"
            )
        self.head = (await self._task.snapshot()).head
        return self

    async def restore(self) -> None:
        for table in TABLES:
            await execute(self._settings, f"delete from {table} where task_id = '{self._task.id}'")
        for table in reversed(TABLES):
            await execute(self._settings, f"insert into {table} select * from copy_{table}")


async def forget(engine: Engine, task: Task) -> None:
    """Take a task out of the store altogether."""
    for table in TABLES:
        await execute(engine.settings, f"delete from {table} where task_id = '{task.id}'")


async def conversation(engine: Engine, *texts: str) -> Task:
    task = engine.task()
    await task.start("m0", texts[0])
    for turn, text in enumerate(texts[1:], start=1):
        await task.until(lambda now, turn=turn: now.turn == turn and now.state.is_interrupted)
        await task.say(f"m{turn}", text)
    await task.until(lambda now: now.turn == len(texts) and now.state.is_interrupted)
    return task


async def test_the_next_message_after_a_loss_goes_on_above_all_numbers_that_were_given(engine: Engine) -> None:
    task = await conversation(engine, "one")
    copy = await Copy(engine, task).take()
    await task.say("m1", "two")
    before = await task.until(lambda now: now.turn == 2 and now.state.is_interrupted)
    await copy.restore()
    receipt = await task.say("m2", "three")
    assert receipt.seq == before.head + 2  # the one between says which are lost
    after = await task.until(lambda now: now.turn == 3 and now.state.is_interrupted)
    log = await task.log()
    assert {"lost": {"from": copy.head + 1, "to": before.head}} in log
    assert after.head == len(log) + (before.head - copy.head)
    assert await task.replies() == ["re: one", "re: three"]


async def test_a_repeat_of_an_older_message_does_not_take_the_task_back(engine: Engine) -> None:
    task = await conversation(engine, "one")
    copy = await Copy(engine, task).take()
    await task.say("m1", "two")
    before = await task.until(lambda now: now.turn == 2 and now.state.is_interrupted)
    await copy.restore()
    assert (await task.say("m0", "one")).received_as == "repeat"
    known = await task.handle.query(contracts.SNAPSHOT, result_type=contracts.TaskSnapshot)
    assert known.head == before.head
    assert (await task.say("m2", "three")).seq == before.head + 2


async def test_a_parked_task_whose_end_of_turn_was_lost_is_written_anew_by_housekeeping(engine: Engine) -> None:
    task = engine.task()
    engine.model.hold()
    await task.start("m0", "one")
    await engine.model.until_asked()
    copy = await Copy(engine, task).take()
    engine.model.gate.set()
    before = await task.until(lambda now: now.state.is_interrupted)
    await copy.restore()
    assert (await task.snapshot()).state.word == "WORKING"
    await engine.housekeeping().once()
    after = await task.until(lambda now: now.state.is_interrupted)
    assert after.head == before.head + 2
    assert after.model_copy(update={"head": before.head}) == before
    assert len(engine.model.requests) == 1


async def test_a_turn_whose_start_was_lost_still_tells_its_reply(engine: Engine) -> None:
    task = await conversation(engine, "one")
    copy = await Copy(engine, task).take()
    engine.model.hold()
    await task.say("m1", "two")
    await engine.model.until_asked()
    working = await task.snapshot()
    await copy.restore()
    engine.model.gate.set()
    after = await task.until(lambda now: now.turn == 2 and now.state.is_interrupted)
    assert after.head == working.head + 2
    assert await task.replies() == ["re: one", "re: two"]


async def test_after_a_restore_all_tasks_are_compared_also_those_that_the_store_forgot(engine: Engine) -> None:
    parked, forgotten = await conversation(engine, "one", "two"), await conversation(engine, "three")
    heads = [(await task.snapshot()).head for task in (parked, forgotten)]
    await forget(engine, forgotten)
    assert await reconcile_all(engine.temporal, engine.store, engine.settings.temporal.task_queue) >= 2
    found = await forgotten.until(lambda now: now.head == heads[1] + 2)
    assert found.sub_state == "awaiting-next-message"
    assert [person.id for person in found.participants] == ["ann", "tiny-harness"]
    assert await engine.store.task_of("ann", forgotten.id) is not None
    await forgotten.say("m9", "four")
    await forgotten.until(lambda now: now.turn == 2 and now.state.is_interrupted)
    assert (await forgotten.replies())[-1] == "re: four"


async def test_a_message_that_was_lost_before_it_was_answered_is_asked_for_again(engine: Engine) -> None:
    task = await conversation(engine, "one")
    copy = await Copy(engine, task).take()
    engine.model.failures.append(ModelError("busy", transient=True))
    engine.model.asked.clear()
    await task.say("m1", "two")
    await engine.model.until_asked()
    await copy.restore()
    await task.until(lambda now: now.turn == 2 and now.state.is_interrupted)
    assert "send it again" in (await task.replies())[-1]
    assert len(engine.model.requests) == 2
    await task.say("m1", "two")
    await task.until(lambda now: now.turn == 3 and now.state.is_interrupted)
    assert (await task.replies())[-1] == "re: two"


async def test_repair_replaces_a_run_by_one_from_the_store(engine: Engine) -> None:
    task = await conversation(engine, "one")
    first = (await task.handle.describe()).run_id
    queue = engine.settings.temporal.task_queue
    assert await repair_task(engine.temporal, engine.store, queue, task.id) == "restarted"
    assert (await task.handle.describe()).run_id != first
    await task.say("m1", "two")
    await task.until(lambda now: now.turn == 2 and now.state.is_interrupted)
    await task.cancel()
    await task.until_state("CANCELED")
    assert await repair_task(engine.temporal, engine.store, queue, task.id) == "ended"
    assert await task.replies() == ["re: one", "re: two"]
