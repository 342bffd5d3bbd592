"""The main screens as they look, on terminals of all sizes.

`TINY_HARNESS_WRITE_SCREENS=1` writes the pictures in `screens/` anew; look at the difference before it goes in.
"""

import os
from collections.abc import Awaitable, Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Static

from tests.unit.sdk.fake_client import FakeClient
from tests.unit.sdk.tui_pilot import misfits, open_app, question, screen, state, texts, until, write
from tiny_harness.contracts import Usage
from tiny_harness.ext.plan import Plan, PlanStep
from tiny_harness.ext.task import Participant, SubTask, TaskData
from tiny_harness.states import TaskState
from tiny_harness.tui.app import HarnessApp
from tiny_harness.tui.picker import TaskPicker

SCREENS = Path(__file__).with_name("screens")
STEPS = (
    PlanStep(id="a", name="Look at the order", status="done", output="an electric kettle, 79.00 EUR"),
    PlanStep(id="b", name="Read the rules", status="active"),
    PlanStep(id="c", name="Pay it back"),
)
DATA = TaskData(
    model="big",
    reasoning_effort="high",
    plan=Plan(steps=STEPS),
    sub_tasks=(SubTask(task_id="k1", state="TASK_STATE_COMPLETED"),),
    participants=(Participant(id="ann", role="reporter"),),
)

Making = Callable[[FakeClient, HarnessApp, Pilot[None]], Awaitable[None]]


async def first_run(_client: FakeClient, app: HarnessApp, pilot: Pilot[None]) -> None:
    await until(pilot, lambda: "Not started" in state(app))


async def turn_that_runs(client: FakeClient, app: HarnessApp, pilot: Pilot[None]) -> None:
    await write(pilot, "My kettle arrived broken.")
    await until(pilot, lambda: "Working" in state(app))
    client.tell("t1", DATA)
    client.step("t1", "shop/orders.look", text="I look at the **order**.")
    await until(pilot, lambda: len(texts(app)) == 3)
    await write(pilot, "It is order A-17.")
    await until(pilot, lambda: texts(app)[-1] == "It is order A-17.\nqueued")


async def details(client: FakeClient, app: HarnessApp, pilot: Pilot[None]) -> None:
    await turn_that_runs(client, app, pilot)
    await pilot.press("f7")
    await until(pilot, lambda: "Reporter: ann (human)" in "\n".join(screen(app)))


async def approval(client: FakeClient, app: HarnessApp, pilot: Pilot[None]) -> None:
    await write(pilot, "Pay it back.")
    await until(pilot, lambda: "Working" in state(app))
    client.ask("t1", "May I pay 79.00 EUR back?", client.sent[0][0], "approve", "refuse", request_id="r1")
    await until(pilot, lambda: question(app) is not None)
    await pilot.press("f6")


async def commands(_client: FakeClient, app: HarnessApp, pilot: Pilot[None]) -> None:
    await pilot.press("/")
    await until(pilot, lambda: app.query_one("#completions").has_class("open"))


async def cancel_is_asked(client: FakeClient, app: HarnessApp, pilot: Pilot[None]) -> None:
    await write(pilot, "hello")
    await until(pilot, lambda: "Working" in state(app))
    used = Usage(calls=2, input_tokens=12_000, output_tokens=345, cost=Decimal("0.021"))
    client.views["t1"] = replace(client.views["t1"], usage=used)
    client.reply("t1", "Hello!", client.sent[0][0])
    await until(pilot, lambda: "tokens" in str(app.query_one("#used", Static).render()))
    await pilot.press("f3")


async def tasks(client: FakeClient, app: HarnessApp, pilot: Pilot[None]) -> None:
    client.add_task("old", "Old thing", "question", "answer")
    client.add_task("done", "Done thing")
    client.change("done", TaskState.COMPLETED)
    await pilot.press("f5")
    await until(pilot, lambda: isinstance(app.screen, TaskPicker))
    await until(pilot, lambda: any("Done thing" in line for line in screen(app)))


SIZES = {"narrow": (60, 20), "usual": (80, 24), "wide": (120, 40)}
SHOWN: list[tuple[Making, str]] = [
    (first_run, "narrow"),
    (first_run, "usual"),
    (turn_that_runs, "narrow"),
    (turn_that_runs, "wide"),
    (details, "usual"),
    (approval, "usual"),
    (commands, "usual"),
    (cancel_is_asked, "wide"),
    (tasks, "usual"),
]


@pytest.mark.parametrize(("screen_of", "size"), SHOWN, ids=[f"{made.__name__}-{size}" for made, size in SHOWN])
async def test_the_screen_looks_as_it_did(screen_of: Making, size: str) -> None:
    async with open_app(SIZES[size]) as (client, app, pilot):
        await screen_of(client, app, pilot)
        await pilot.pause()
        file = SCREENS / f"{screen_of.__name__}-{size}.txt"
        if os.environ.get("TINY_HARNESS_WRITE_SCREENS"):
            SCREENS.mkdir(exist_ok=True)
            file.write_text(_picture(app))
        expected = file.read_text()
        await until(pilot, lambda: _picture(app) == expected, shown=lambda: _picture(app))
        await until(pilot, lambda: misfits(app) == [], shown=lambda: misfits(app))


def _picture(app: HarnessApp) -> str:
    return "".join(line.rstrip() + "\n" for line in screen(app))


STORM = [(60, 20), (200, 60), (100, 20), (110, 24), (60, 60), (109, 30), (200, 20), (80, 24), (120, 40), (60, 20)]


async def test_no_size_breaks_a_screen_and_state_and_keys_stay_in_sight() -> None:
    async with open_app(STORM[0]) as (client, app, pilot):
        await approval(client, app, pilot)
        client.tell("t1", DATA)
        for columns, rows in STORM:
            for key in ("f7", "f7"):
                await pilot.press(key)
                await pilot.resize_terminal(columns, rows)
                await until(pilot, lambda: "Waiting for your approval" in screen(app)[1])
                await until(pilot, lambda: "^Q Quit" in "\n".join(screen(app)[-3:]))
                await until(pilot, lambda: misfits(app) == [], shown=lambda: misfits(app))
                assert len(screen(app)) == rows
