"""The client against a real HTTP server on a Unix socket that speaks our facts and breaks when told to."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from pathlib import Path

import pytest
from starlette.responses import JSONResponse, Response

from tests.integration.fake_gateway import FakeGateway, serving
from tiny_harness.client import (
    Address,
    Changed,
    CommandAnswer,
    Connected,
    DeltaText,
    HarnessClient,
    Question,
    Received,
    Reconnecting,
    Replied,
    StateChanged,
    Stepped,
    TaskEvent,
    TaskShown,
    connect,
    fold,
)
from tiny_harness.errors import (
    AlreadyAnswered,
    ConnectionLost,
    InvalidInput,
    ServerRefused,
    SignInRefused,
    TaskEnded,
    TaskNotCancelable,
    TaskNotFound,
    Unavailable,
)
from tiny_harness.ext import stream
from tiny_harness.local import running_harness
from tiny_harness.settings import Settings
from tiny_harness.states import TaskState

pytestmark = pytest.mark.timeout(30)


@pytest.fixture
def gateway() -> FakeGateway:
    return FakeGateway()


@pytest.fixture
def socket(tmp_path: Path) -> Path:
    return tmp_path / "s"


@pytest.fixture
async def client(gateway: FakeGateway, socket: Path) -> AsyncGenerator[HarnessClient]:
    async with (
        serving(gateway, socket),
        connect(Address("http://localhost", socket, "secret"), "ann", heal_s=5) as client,
    ):
        yield client


@asynccontextmanager
async def connect_while_serving(
    gateway: FakeGateway, socket: Path, address: Address
) -> AsyncGenerator[tuple[HarnessClient, Callable[[], Awaitable[None]]]]:
    """A client, and a function that stops its server."""
    async with AsyncExitStack() as server:
        await server.enter_async_context(serving(gateway, socket))
        async with connect(address, "ann", heal_s=1) as client:
            yield client, server.aclose


async def collect(client: HarnessClient, task_id: str, cursor: int | None = None) -> list[TaskEvent]:
    async with aclosing(client.follow(task_id, cursor)) as events:
        return [event async for event in events]


async def test_a_conversation_goes_on_in_one_task(client: HarnessClient) -> None:
    first = await client.send("hello")
    second = await client.send("again", task_id=first.task.task_id)
    assert (first.reply, second.reply) == ("echo: hello", "echo: again")
    task = await client.task(first.task.task_id)
    assert (task.state, task.sub_state) == (TaskState.INPUT_REQUIRED, "awaiting-next-message")
    assert [message.text for message in task.messages] == ["hello", "echo: hello", "again", "echo: again"]
    assert [message.role for message in task.messages] == ["user", "agent", "user", "agent"]
    assert task.name == "hello"
    assert second.task.state is TaskState.INPUT_REQUIRED


async def test_every_call_names_the_participant_and_activates_deltas(
    client: HarnessClient, gateway: FakeGateway
) -> None:
    result = await client.send("hello")
    await client.task(result.task.task_id)
    for _, headers in gateway.seen:
        assert headers["x-participant-id"] == "ann"
        assert headers["x-participant-kind"] == "human"
        assert headers["authorization"] == "Bearer secret"
        assert stream.URI in headers["a2a-extensions"]
        assert headers["host"] == "localhost", "the card may not send credentials elsewhere"


async def test_a_send_survives_a_cut_at_every_event(gateway: FakeGateway, client: HarnessClient) -> None:
    for cut in range(3):
        gateway.cuts = [cut, 0]
        result = await client.send(f"message {cut}", message_id=f"m{cut}")
        assert result.reply == f"echo: message {cut}"
    assert len(gateway.tasks) == 3
    assert all(len(task.events) == 2 for task in gateway.tasks.values()), "no message was taken twice"


async def test_a_send_survives_a_stream_that_the_server_closes(gateway: FakeGateway, client: HarnessClient) -> None:
    gateway.closes = [1, 0]
    assert (await client.send("hello")).reply == "echo: hello"
    resumed = [headers.get("last-event-id") for method, headers in gateway.seen if method == "SubscribeToTask"]
    assert resumed == ["1", "1"]


async def test_a_busy_harness_is_asked_again_with_the_same_message(gateway: FakeGateway, client: HarnessClient) -> None:
    gateway.refusals = [Response(status_code=503, headers={"Retry-After": "0"}) for _ in range(2)]
    assert (await client.send("hello")).reply == "echo: hello"
    assert len(gateway.tasks) == 1


async def test_a_harness_that_stays_busy_is_an_error_in_bounded_time(
    gateway: FakeGateway, client: HarnessClient
) -> None:
    gateway.refusals = [Response(status_code=503, headers={"Retry-After": "60"})]
    with pytest.raises(Unavailable):
        await client.send("hello")


async def test_an_ended_task_refuses_with_its_state(client: HarnessClient) -> None:
    task_id = (await client.send("hello")).task.task_id
    assert (await client.complete(task_id, "done")).state is TaskState.COMPLETED
    with pytest.raises(TaskEnded) as ended:
        await client.send("more", task_id=task_id)
    assert (ended.value.task_id, ended.value.state) == (task_id, "COMPLETED")
    with pytest.raises(TaskNotCancelable):
        await client.cancel(task_id)


async def test_an_unknown_task_is_not_found(client: HarnessClient) -> None:
    for call in (client.task("nope"), client.cancel("nope"), client.send("x", task_id="nope"), client.complete("nope")):
        with pytest.raises(TaskNotFound):
            await call
    with pytest.raises(TaskNotFound):
        await collect(client, "nope")


async def test_other_statuses_keep_the_words_of_the_server(gateway: FakeGateway, client: HarnessClient) -> None:
    body = {"error": {"code": 413, "status": "TOO_LARGE", "message": "a request may have 7 bytes"}}
    gateway.refusals = [JSONResponse(body, 413)]
    with pytest.raises(ServerRefused) as refused:
        await client.tasks()
    assert (refused.value.status, str(refused.value)) == (413, "a request may have 7 bytes")


@pytest.mark.parametrize(("status", "word"), [(401, "UNAUTHENTICATED"), (403, "FOREIGN_PARTICIPANT")])
async def test_who_is_not_let_in_is_told_why(
    gateway: FakeGateway, client: HarnessClient, status: int, word: str
) -> None:
    gateway.refusals = [JSONResponse({"error": {"code": status, "status": word, "message": "not you"}}, status)]
    with pytest.raises(SignInRefused) as refused:
        await client.tasks()
    assert (refused.value.status, str(refused.value)) == (status, "not signed in: not you")
    assert refused.value.server_code == word.lower()


async def test_a_task_is_renamed_interrupted_listed_and_canceled(gateway: FakeGateway, client: HarnessClient) -> None:
    task_id = (await client.send("hello")).task.task_id
    assert (await client.rename(task_id, "Greeting")).name == "Greeting"
    await client.interrupt(task_id)
    listed = await client.tasks(limit=10, state=TaskState.INPUT_REQUIRED)
    assert [task.name for task in listed] == ["Greeting"]
    assert (listed.total, listed.after) == (1, None)
    assert (await client.cancel(task_id)).state is TaskState.CANCELED


async def test_a_cancel_whose_answer_was_lost_is_not_an_error(gateway: FakeGateway, client: HarnessClient) -> None:
    task_id = (await client.send("hello")).task.task_id
    await client.cancel(task_id)
    gateway.refusals = [Response(status_code=503, headers={"Retry-After": "0"})]
    assert (await client.cancel(task_id)).state is TaskState.CANCELED


async def test_an_interrupt_cuts_a_turn_and_ends_its_send(gateway: FakeGateway, client: HarnessClient) -> None:
    async with asyncio.TaskGroup() as group:
        started = asyncio.Event()

        async def send() -> list[TaskEvent]:
            seen: list[TaskEvent] = []
            async with aclosing(client.stream("slow one")) as events:
                async for event in events:
                    seen.append(event)
                    started.set()
            return seen

        sending = group.create_task(send())
        await started.wait()
        await client.interrupt("t1")
    first, last = sending.result()
    assert isinstance(first, TaskShown)
    assert isinstance(last, StateChanged)
    assert last.state is TaskState.INPUT_REQUIRED


async def test_a_queued_message_waits_for_the_turn_that_reads_it(gateway: FakeGateway, client: HarnessClient) -> None:
    async with asyncio.TaskGroup() as group:
        first = group.create_task(client.send("slow one"))
        while "t1" not in gateway.tasks:
            await client.tasks()
        second = group.create_task(client.send("two", task_id="t1"))
        while not gateway.tasks["t1"].waiting:
            await client.tasks()
        gateway.release.set()
    assert (first.result().reply, second.result().reply) == ("echo: slow one", "echo: the queue")


MAY_I = Question("awaiting-approval", "May I refund it?", "1.1.0", ("approve", "refuse"))


async def test_steps_neither_end_a_turn_nor_are_its_reply(client: HarnessClient) -> None:
    told: list[TaskEvent] = []
    result = await client.send("look at it", on_event=told.append)
    steps = [event for event in told if isinstance(event, Stepped)]
    assert [[use.name for use in step.tool_calls] for step in steps] == [["p/orders.look"] * 2, ["create_plan"]]
    assert (result.reply, result.task.question) == ("echo: look at it", None)
    assert [message.text for message in result.task.messages] == ["look at it", "let me see", "echo: look at it"]
    assert result.task.plan is not None
    assert [step.status for step in result.task.plan.steps] == ["done", "pending"]
    assert await client.task(result.task.task_id) == result.task


async def test_a_question_of_the_agents_ends_the_send_and_a_message_answers_it(client: HarnessClient) -> None:
    asked = await client.send("which one")
    assert asked.reply == "Which one?"
    assert asked.task.question == Question("awaiting-answer", "Which one?", None, ("one", "two"))
    answered = await client.send("two", task_id=asked.task.task_id)
    assert (answered.reply, answered.task.question) == ("echo: two", None)


async def test_an_approval_is_answered_and_the_turn_that_goes_on_is_waited_for(client: HarnessClient) -> None:
    for value, word in (("approve", "refunded"), ("refuse", "not refunded")):
        asked = await client.send("refund it")
        task_id = asked.task.task_id
        assert (asked.reply, asked.task.question) == ("May I refund it?", MAY_I)
        assert (await client.task(task_id)).question == MAY_I
        told: list[TaskEvent] = []
        answered = await client.answer(task_id, "1.1.0", value, "because", on_event=told.append)
        assert (answered.reply, answered.task.sub_state) == (word, "awaiting-next-message")
        assert [type(event) for event in told] == [StateChanged, Stepped, Replied]
        with pytest.raises(AlreadyAnswered) as late:
            await client.answer(task_id, "1.1.0", value)
        assert late.value.request_id == "1.1.0"


async def test_words_refuse_a_call_and_wait_for_the_turn(client: HarnessClient) -> None:
    asked = await client.send("refund it")
    answered = await client.send("no, look first", task_id=asked.task.task_id)
    assert (answered.reply, answered.task.question) == ("not refunded", None)


async def test_an_answer_survives_a_cut_at_every_event_and_counts_once(
    gateway: FakeGateway, client: HarnessClient
) -> None:
    for cut in range(6):
        task_id = (await client.send("refund it")).task.task_id
        gateway.cuts = [1, cut - 1] if cut > 0 else [0]
        assert (await client.answer(task_id, "1.1.0", "approve")).reply == "refunded"
        gateway.cuts = []
    assert len(gateway.tasks) == 6
    assert all(len(task.events) == 5 for task in gateway.tasks.values())


async def test_who_only_answers_need_not_wait_for_the_turn(client: HarnessClient) -> None:
    task_id = (await client.send("refund it")).task.task_id
    async with aclosing(client.stream_answer(task_id, "1.1.0", "approve")) as events:
        first = await anext(events)
    assert isinstance(first, StateChanged)
    assert first.state is TaskState.WORKING


async def test_another_surfaces_answer_closes_the_question_of_a_follower(client: HarnessClient) -> None:
    task_id = (await client.send("refund it")).task.task_id
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        following = group.create_task(collect(client, task_id))
        await client.answer(task_id, "1.1.0", "approve")
        await client.complete(task_id)
    view, questions = None, list[bool]()
    for event in following.result():
        view = fold(view, event)
        assert view is not None
        questions.append(view.question is not None)
    assert questions[-1] is False
    assert True not in questions[1:]


async def test_a_command_is_answered_by_the_harness_also_as_a_first_message(client: HarnessClient) -> None:
    first = await client.send("/status")
    assert first.reply == "status: done"
    assert first.command == CommandAnswer("status", "done", {"model": None})
    assert (first.task.state, first.task.sub_state) == (TaskState.INPUT_REQUIRED, "awaiting-next-message")
    changed = await client.send("/model big", task_id=first.task.task_id)
    assert (changed.task.model, changed.task.task_id) == ("big", first.task.task_id)
    refused = await client.send("/secret", task_id=first.task.task_id)
    assert refused.command is not None
    assert (refused.command.name, refused.command.outcome) == ("secret", "refused")
    plain = await client.send("/unknown thing", task_id=first.task.task_id)
    assert (plain.reply, plain.command) == ("echo: /unknown thing", None)


async def test_a_command_in_the_middle_of_a_turn_ends_only_its_own_send(
    gateway: FakeGateway, client: HarnessClient
) -> None:
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        talk = group.create_task(client.send("slow one"))
        while "t1" not in gateway.tasks:
            await client.tasks()
        following = group.create_task(collect(client, "t1", 1))
        result = await client.send("/model big", task_id="t1")
        assert (result.reply, result.task.state, result.task.model) == ("model: done", TaskState.WORKING, "big")
        assert not talk.done()
        gateway.release.set()
        assert (await talk).reply == "echo: slow one"
        await client.complete("t1")
    events = following.result()
    assert [event.ends_turn for event in events if isinstance(event, Replied)] == [False, True]
    assert [type(event) for event in events] == [Received, Replied, Replied, StateChanged]


async def test_a_command_survives_a_cut_at_every_event_and_runs_once(
    gateway: FakeGateway, client: HarnessClient
) -> None:
    for cut in range(3):
        gateway.cuts = [cut, 0]
        result = await client.send("/status", message_id=f"m{cut}")
        assert (result.reply, result.command and result.command.outcome) == ("status: done", "done")
    gateway.closes = [1, 0]
    assert (await client.send("/status", message_id="m3")).reply == "status: done"
    assert all(len(task.events) == 2 for task in gateway.tasks.values())


async def test_the_commands_are_those_of_the_card_until_it_is_asked_again(
    gateway: FakeGateway, client: HarnessClient
) -> None:
    assert [offer.name for offer in await client.commands()] == ["status", "model", "deploy", "secret"]
    assert (await client.commands())[1].argument_hint == "<name>"
    gateway.offers = [{"name": "later", "description": "", "argument_hint": ""}]
    assert len(await client.commands()) == 4
    assert [offer.name for offer in await client.commands(refresh=True)] == ["later"]
    assert [offer.name for offer in await client.commands()] == ["later"]


async def test_a_follower_sees_each_event_once_whatever_breaks(gateway: FakeGateway, client: HarnessClient) -> None:
    task_id = (await client.send("one")).task.task_id
    gateway.cuts = [1, 0, 0, 1]
    following = asyncio.create_task(collect(client, task_id))
    while gateway.cuts:
        await client.tasks()
    for text in ("two", "three"):
        await client.send(text, task_id=task_id)
    await client.complete(task_id)
    events = await following
    numbered = [event.seq for event in events if isinstance(event, Changed)]
    assert numbered == [3, 4, 5, 6, 7]
    assert any(isinstance(event, Reconnecting) for event in events)
    assert any(isinstance(event, Connected) for event in events)
    view = None
    for event in events:
        view = fold(view, event)
    assert view is not None
    assert view.state is TaskState.COMPLETED
    assert [m.text for m in view.messages] == ["one", "echo: one", "two", "echo: two", "three", "echo: three"]


async def test_a_follower_with_a_cursor_misses_and_repeats_none_also_after_the_end(client: HarnessClient) -> None:
    task_id = (await client.send("one")).task.task_id
    await client.send("two", task_id=task_id)
    await client.complete(task_id)
    for cursor in range(1, 5):
        events = await collect(client, task_id, cursor)
        assert [event.seq for event in events if isinstance(event, Changed)] == list(range(cursor + 1, 6))
    kinds = [type(event) for event in await collect(client, task_id, 1)]
    assert kinds == [Replied, Received, Replied, StateChanged]


async def test_a_follower_of_an_ended_task_gets_the_task(client: HarnessClient) -> None:
    task_id = (await client.send("one")).task.task_id
    await client.complete(task_id)
    for cursor in (None, 3):
        (shown,) = await collect(client, task_id, cursor)
        assert isinstance(shown, TaskShown)
        assert shown.view.state is TaskState.COMPLETED


async def test_a_follower_survives_a_restart_of_the_harness(gateway: FakeGateway, socket: Path) -> None:
    address = Address("http://localhost", socket)
    async with asyncio.timeout(20), connect_while_serving(gateway, socket, address) as (client, stop):
        await client.send("one")
        async with aclosing(client.follow("t1")) as events:
            assert isinstance(await anext(events), TaskShown)
            await stop()
            assert isinstance(await anext(events), Reconnecting)
            async with serving(gateway, socket):
                assert isinstance(await anext(events), Connected)
                await client.send("two", task_id="t1")
                assert isinstance(await anext(events), Received)


async def test_nothing_at_the_address_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConnectionLost):
        async with connect(Address("http://localhost", tmp_path / "absent"), "ann"):
            pass


async def test_a_harness_that_stays_away_is_an_error_in_bounded_time(gateway: FakeGateway, socket: Path) -> None:
    address = Address("http://localhost", socket)
    async with asyncio.timeout(20), connect_while_serving(gateway, socket, address) as (client, stop):
        await stop()
        with pytest.raises(ConnectionLost):
            await client.send("hello")
        with pytest.raises(ConnectionLost):
            await client.task("t1")


async def test_a_real_harness_understands_us_as_the_fake_one_does(settings: Settings) -> None:
    async with running_harness(settings) as harness, connect(harness.address, "ann") as client:
        first = await client.send("hello")
        task_id = first.task.task_id
        assert "Hello!" in first.reply
        following = asyncio.create_task(collect(client, task_id))
        assert (await client.rename(task_id, "Greeting")).name == "Greeting"
        second = await client.send("hello again", task_id=task_id)
        assert second.task.sub_state == "awaiting-next-message"
        assert (await client.interrupt(task_id)).state is TaskState.INPUT_REQUIRED
        assert [task.name for task in await client.tasks()] == ["Greeting"]
        assert (await client.complete(task_id, "done")).state is TaskState.COMPLETED
        events = await following
        with pytest.raises(TaskEnded) as ended:
            await client.send("more", task_id=task_id)
        assert ended.value.state == "COMPLETED"
        with pytest.raises(TaskNotCancelable):
            await client.cancel(task_id)
        with pytest.raises(TaskNotFound):
            await client.task("nope")
        with pytest.raises(InvalidInput) as empty:
            await client.send("  ")
        assert empty.value.kind == "empty_message"
        canceled = await client.cancel((await client.send("hello")).task.task_id)
        assert canceled.state is TaskState.CANCELED
    view = None
    for event in events:
        view = fold(view, event)
    assert view is not None
    assert [message.text for message in view.messages] == ["hello", first.reply, "hello again", second.reply]
    pieces = [event for event in events if isinstance(event, DeltaText)]
    assert "".join(piece.text for piece in pieces) == second.reply
    assert [event.seq for event in events if isinstance(event, Changed)] == [3, 4, 5, 6]
