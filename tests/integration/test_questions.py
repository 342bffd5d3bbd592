"""Questions, steps, plans and notes of a real harness, as the client and the terminal's surfaces understand them."""

import asyncio
import io
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path

import pytest

from tests.unit.sdk.tui_pilot import family, question, state, texts, until, write
from tiny_harness import HarnessClient, Settings, connect
from tiny_harness.client import Address, Question, Received, Stepped, TaskEvent, TaskShown
from tiny_harness.errors import AlreadyAnswered, InvalidInput, RoleNotPermitted
from tiny_harness.local import running_harness
from tiny_harness.settings import ScriptedSettings
from tiny_harness.states import TaskState
from tiny_harness.tui.app import HarnessApp
from tiny_harness.tui.plain import run_plain

pytestmark = pytest.mark.timeout(120)

PATIENCE_S = 60

SCRIPT = """
[[rules]]
when = { result = { name = "set_participant_role", is_error = false } }
reply = "Bob is in."
[[rules]]
when = { result = { name = "set_participant_role", is_error = true } }
reply = "Then without Bob: {result}"
[[rules]]
when = { result = { name = "spawn_subtask" } }
reply = "It has started."
[[rules]]
when = { text = "^invite" }
reply = "Bob should see this."
tool_calls = [
  { name = "create_plan", arguments = { steps = [{ id = "a", name = "Ask" }] } },
  { name = "set_participant_role", arguments = { participant = "bob", role = "watcher" } },
]
[[rules]]
when = { text = "^which" }
tool_calls = [{ name = "ask_participant", arguments = { question = "Which one?", choices = ["one", "two"] } }]
[[rules]]
when = { text = "^split" }
tool_calls = [{ name = "spawn_subtask", arguments = { goal = "sum it up" } }]
[[rules]]
when = { text = "COMPLETED" }
reply = "The part is done."
[[rules]]
reply = "I heard: {text}"
"""

WANTS = "The agent wants bob to take part in this task as watcher."
MAY_I = Question("awaiting-approval", WANTS, "1.1.1", ("approve", "refuse"))


@pytest.fixture(scope="module")
async def address(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Address]:
    folder: Path = tmp_path_factory.mktemp("harness")
    (folder / "script.toml").write_text(SCRIPT)
    settings = Settings.model_validate(
        {
            "store": {"sqlite_path": folder / "store.db"},
            "model": {"provider": "scripted"},
            "scripted": ScriptedSettings(script=folder / "script.toml"),
            "server": {"bind": "127.0.0.1:0", "participant": "ann"},
        }
    )
    async with running_harness(settings) as harness:
        yield harness.address


@pytest.fixture
async def client(address: Address) -> AsyncGenerator[HarnessClient]:
    async with connect(address, "ann") as client:
        yield client


async def test_an_approval_is_asked_answered_once_and_the_turn_goes_on(client: HarnessClient) -> None:
    asked = await client.send("invite bob")
    task_id = asked.task.task_id
    assert (asked.reply, asked.task.question) == (WANTS, MAY_I)
    assert (await client.task(task_id)).question == MAY_I
    with pytest.raises(InvalidInput):
        await client.answer(task_id, "1.1.1", "perhaps")
    told: list[TaskEvent] = []
    answered = await client.answer(task_id, "1.1.1", "approve", on_event=told.append)
    assert (answered.reply, answered.task.question) == ("Bob is in.", None)
    [step] = [event for event in told if isinstance(event, Stepped)]
    assert [use.name for use in step.tool_calls] == ["create_plan", "set_participant_role"]
    assert step.message is not None
    assert step.message.text == "Bob should see this."
    assert answered.task.plan is not None
    assert [part.name for part in answered.task.plan.steps] == ["Ask"]
    usage = (await client.task(task_id)).usage
    assert usage is not None
    assert usage.calls == 2
    with pytest.raises(AlreadyAnswered) as late:
        await client.answer(task_id, "1.1.1", "refuse")
    assert late.value.request_id == "1.1.1"


async def test_who_may_not_approve_is_told_so_and_the_question_stays(address: Address, client: HarnessClient) -> None:
    task_id = (await client.send("/invite eve assignee")).task.task_id
    asked = await client.send("invite bob", task_id=task_id)
    assert asked.task.question is not None
    async with connect(address, "eve") as eve:
        with pytest.raises(RoleNotPermitted):
            await eve.answer(task_id, asked.task.question.request_id or "", "approve")
    assert (await client.task(task_id)).question == asked.task.question


async def test_words_refuse_with_their_reason(client: HarnessClient) -> None:
    asked = await client.send("invite bob")
    answered = await client.send("he has left", task_id=asked.task.task_id)
    assert "he has left" in answered.reply
    assert answered.task.question is None


async def test_the_end_of_a_sub_task_is_a_note_and_nobodys_words(client: HarnessClient) -> None:
    task_id = (await client.send("split it")).task.task_id
    notes: list[str] = []
    async with asyncio.timeout(PATIENCE_S), aclosing(client.follow(task_id)) as events:
        async for event in events:
            if isinstance(event, TaskShown):
                notes += [message.text for message in event.view.messages if message.role == "note"]
            elif isinstance(event, Received) and event.message.role == "note":
                notes.append(event.message.text)
            view = await client.task(task_id)
            if view.messages[-1].text == "The part is done.":
                break
    assert len(notes) == 1
    assert "is COMPLETED" in notes[0]
    assert [message.role for message in (await client.task(task_id)).messages] == ["user", "agent", "note", "agent"]
    [child] = (await client.task(task_id)).sub_tasks
    assert [message.role for message in (await client.task(child.task_id)).messages] == ["note", "agent"]


async def test_lines_ask_and_are_answered(address: Address) -> None:
    out = io.StringIO()
    async with asyncio.timeout(PATIENCE_S):
        lines = io.StringIO("invite bob\nrefuse\nwhich\ntwo\n")
        assert await run_plain(address, "ann", lines, out) == 0
    assert out.getvalue().splitlines() == [
        WANTS,
        "[Input required · Waiting for your approval]",
        "[answer: approve | refuse]",
        "Bob should see this.",
        "[used create_plan, set_participant_role ✗]",
        "[Plan · 0 of 1 done]",
        "[▸ Ask]",
        "Then without Bob: It was refused.",
        "[used ask_participant]",
        "Which one?",
        "[Input required · Waiting for your answer]",
        "[answer: one | two]",
        "I heard: two",
    ]


async def test_the_screen_asks_and_another_surface_answers(client: HarnessClient) -> None:
    task_id = (await client.send("hello")).task.task_id
    app = HarnessApp(client, task_id)
    async with app.run_test(size=(90, 40)) as pilot:
        await write(pilot, "invite bob")
        await until(pilot, lambda: question(app) == (f"Waiting for your approval\n{WANTS}", ["approve", "refuse"]))
        await client.answer(task_id, "2.1.1", "approve")
        await until(pilot, lambda: question(app) is None and "Your turn" in state(app))
        assert family(app) == ("Plan · 0 of 1 done", "▸ Ask")
        await until(pilot, lambda: "Bob is in." in texts(app))
        assert sorted(texts(app)[2:]) == sorted(
            ["invite bob", "Bob should see this.", WANTS, "used create_plan, set_participant_role", "Bob is in."]
        )
        await write(pilot, "which")
        await until(pilot, lambda: question(app) == ("Waiting for your answer\nWhich one?", ["one", "two"]))
        await pilot.press("f6", "down", "enter")
        await until(pilot, lambda: texts(app)[-1] == "I heard: two" and "Your turn" in state(app))
        assert (await client.task(task_id)).state is TaskState.INPUT_REQUIRED
