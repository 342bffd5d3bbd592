"""The engine killed (`-9`) in the middle of each fault that issue 4 names: the work ends as it would have ended."""

import asyncio
import json
import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.plugin_folder import SCHEMA
from tests.e2e.process import HarnessProcess, Ledger, relatives_of, running, until_gone
from tests.integration.agents.site import until
from tiny_harness.client import Address, HarnessClient, connect
from tiny_harness.errors import UnresolvedSubTasks
from tiny_harness.states import TaskState

IS_SOAK = bool(os.environ.get("TINY_HARNESS_SOAK"))
PATIENCE_S = 120
LAUNCHER = "tests.e2e.place_launcher"
SERVER = Path(__file__).parents[1] / "integration/tools/servers/orders.py"
DOUBT = "Did the call take effect?"
AT_HANGING = "in a call that hangs"

Rule = dict[str, Any]


def calls(*calls: tuple[str, Mapping[str, Any]], step: int = 1) -> Rule:
    """Make a rule: what the model asks for in a step."""
    return {"when": {"step": step}, "tool_calls": [{"name": name, "arguments": dict(what)} for name, what in calls]}


def after(name: str, reply: str, *, is_error: bool, text: str = "") -> Rule:
    """Make a rule: what the model says to a tool's result."""
    return {"when": {"result": {"name": name, "is_error": is_error, "text": text}}, "reply": reply}


def spawning(child: Rule) -> list[Rule]:
    """Make the rules of a task that waits for a sub-task, and those of the sub-task."""
    return [
        {"when": {"text": r"<goal>\s*fall"}, **child},
        {"when": {"text": r"is (?P<state>FAILED|CANCELED|COMPLETED)"}, "reply": "It is {state}."},
        calls(("spawn_subtask", {"goal": "fall"})),
        {"reply": "I wait."},
    ]


LEFT: Rule = {"when": {"text": "not in the books"}, "reply": "Then I leave it."}
LONG = [
    {"when": {"system": r"\AYou write down what matters"}, "reply": "Much was read."},
    *(calls(("t/orders.big", {"size": 4_000}), step=step) for step in range(1, 13)),
    {"reply": "All is read."},
]
STEPS = [{"id": "a", "name": "a", "description": "a", "depends_on": ["b"]}]
CYCLE = {"steps": [*STEPS, {"id": "b", "name": "b", "description": "b", "depends_on": ["a"]}]}


@dataclass(frozen=True)
class Place:
    """Where a harness dies, and what comes of its work all the same."""

    rules: Sequence[Rule]
    dies: tuple[str, int]
    """A crossing's name, and the how manieth it is."""
    says: str
    """The agent's last words."""
    doubts: int = 0
    """How often somebody is asked whether a call was made."""
    done: Mapping[str, int] = field(default_factory=dict[str, int])
    """Lines in what the tools' server wrote down, at least; a call that may be made again may be there once more."""
    is_cancelled: bool = False
    """Whether the sub-task is cancelled by somebody."""


PLACES = {
    "a tool hangs": Place([LEFT, calls(("t/orders.hang", {"word": "now"}))], (AT_HANGING, 1), "Then I leave it.", 1),
    "a tool's server dies in a call": Place(
        [LEFT, calls(("t/orders.die", {"word": "now"}))], ("after the call", 1), "Then I leave it.", 1, {"deaths": 1}
    ),
    "a tool's server has died before": Place(
        [
            calls(("t/orders.die", {"word": "now"})),
            after("t/orders.die", "The shop is closed.", is_error=True),
        ],
        ("after call record", 1),
        "The shop is closed.",
        done={"deaths": 1},
    ),
    "a tool returns 5 MB and an injection": Place(
        [
            calls(("t/orders.big", {"size": 5_000_000}), ("t/orders.inject", {}), ("t/orders.picture", {})),
            after("t/orders.inject", "Read.", is_error=False),
        ],
        ("after call record", 3),
        "Read.",
    ),
    "the schema changes": Place(
        [
            calls(("t/orders.change", {})),
            calls(("t/orders.add", {"a": 1, "b": 2, "c": 3}), step=2),
            after("t/orders.add", "It is another tool now.", is_error=True),
        ],
        ("after step record", 2),
        "It is another tool now.",
    ),
    "an unknown tool and wrong arguments": Place(
        [
            calls(("t/orders.nothing", {}), ("t/orders.add", {"a": "one"})),
            after("t/orders.add", "I was wrong.", is_error=True, text="required property"),
        ],
        ("before commit step", 1),
        "I was wrong.",
    ),
    "a hundred calls in one step": Place(
        [
            calls(*(("t/orders.label", {"order": str(number), "text": "hot"}) for number in range(100))),
            after("t/orders.label", "All have labels.", is_error=False),
        ],
        ("before call record", 50),
        "All have labels.",
        done={"labels": 100},
    ),
    "a plan with a cycle": Place(
        [
            calls(("create_plan", CYCLE)),
            after("create_plan", "It goes in a circle.", is_error=True, text="wait for each other"),
        ],
        ("after step record", 1),
        "It goes in a circle.",
    ),
    "a child fails, before that is written down": Place(
        spawning({"fail": {"reason": "out of tea", "transient": False}}), ("before a child's end", 1), "It is FAILED."
    ),
    "a child fails, after that is written down": Place(
        spawning({"fail": {"reason": "out of tea", "transient": False}}), ("after a child's end", 1), "It is FAILED."
    ),
    "a child is cancelled": Place(
        spawning({"hang": True}), ("before a child's end", 1), "It is CANCELED.", is_cancelled=True
    ),
    "the provider fails": Place(
        [{"fail": {"reason": "500", "transient": True, "times": 2}, "reply": "At last."}],
        ("before model", 2),
        "At last.",
    ),
    "a long conversation is to be summed up": Place(LONG, ("before summary", 1), "All is read."),
    "a long conversation was summed up": Place(LONG, ("after summary", 1), "All is read."),
}
QUICK = ("a tool hangs", "a child fails, before that is written down", "a long conversation was summed up")
"""Where `make test` kills, side by side: most of it is waiting until the dead are missed."""


def furnish(home: Path, rules: Sequence[Rule]) -> None:
    """Configure a harness with a script and a plugin that has one server of tools."""
    plugin, shop = home / "t", home / "shop"
    for folder in (home, plugin, shop):
        folder.mkdir(mode=0o700, parents=True)
    server = {"type": "stdio", "command": "python3", "args": [str(SERVER), str(shop)]}
    settings = {
        "plugins": [plugin],
        "store": {"sqlite_path": home / "store.db"},
        "server": {"participant": "ann", "rate_limit_per_minute": 100_000},
        "model": {"provider": "scripted"},
        "scripted": {"script": home / "script.json", "context_window_tokens": 8_000},
        "retries": {"model": [0.1, 0.1, 0.1]},
    }
    files = {
        plugin / "plugin.json": {"$schema": SCHEMA, "name": "t"},
        plugin / "mcp.json": {
            "$schema": SCHEMA.replace("plugin.schema", "mcp.schema"),
            "mcpServers": {"orders": server},
        },
        home / "script.json": {"rules": rules},
        home / "settings.json": settings,
    }
    for path, document in files.items():
        path.write_text(json.dumps(document, default=str))


def lines(home: Path, name: str) -> list[str]:
    """Read what the tools' server wrote down."""
    path = home / "shop" / name
    return path.read_text().splitlines() if path.exists() else []


async def die(harness: HarnessProcess, place: Place, home: Path) -> None:
    """Wait until a harness has died in its place, or kill it there."""
    if place.dies[0] == AT_HANGING:

        async def hangs() -> bool:
            return bool(lines(home, "hangs"))

        await until(hangs)
        await harness.end(signal.SIGKILL)
        return
    await harness.died()


async def ask(client: HarnessClient, place: Place) -> tuple[int, str]:
    """Give the work, and say how often somebody was asked about a call, and for which task the work is."""
    doubts = 0
    result = await client.send("go")
    while DOUBT in result.reply:
        doubts += 1
        result = await client.send("No, it is not in the books.", task_id=result.task.task_id)
    task_id = result.task.task_id
    if place.is_cancelled:
        [child] = (await client.task(task_id)).sub_tasks
        await client.cancel(child.task_id)

    said: list[str] = []

    async def is_over() -> bool:
        task = await client.task(task_id)
        said[:] = [message.text for message in task.messages]
        return task.state is TaskState.INPUT_REQUIRED and said[-1] == place.says

    try:
        await until(is_over)
    except TimeoutError:
        pytest.fail(f"it ended otherwise: {said}")
    return doubts, task_id


async def survive(name: str, folder: Path) -> None:
    """Give work to a harness that dies in a place, start it again, and see the work end as it should."""
    place, home = PLACES[name], folder / "h"
    furnish(home, place.rules)
    trap = place.dies[0], str(place.dies[1])
    asking: asyncio.Task[tuple[int, str]] | None = None
    try:
        async with asyncio.timeout(PATIENCE_S):
            async with running(home, *trap, free=False, launcher=LAUNCHER) as harness:
                address = Address("http://localhost", socket=harness.socket)
                async with connect(address, "ann", heal_s=PATIENCE_S) as client:
                    asking = asyncio.create_task(ask(client, place))
                    await die(harness, place, home)
                    await until_gone(home, relatives_of)
                    async with running(home, free=False, launcher=LAUNCHER):
                        doubts, task_id = await asking
                        task = await client.task(task_id)
    finally:
        if asking is not None:
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
        await until_gone(home, relatives_of)
    assert doubts == place.doubts
    assert [message.text for message in task.messages].count(place.says) == 1
    for what, count in place.done.items():
        assert len(set(lines(home, what))) == count
        assert len(lines(home, what)) <= count + (what == "labels")
    assert lines(home, "hangs").count("began now") <= 1
    kept = Ledger(home)
    assert kept.repeated_steps() == [], "a recorded model step was called again"
    for numbers in kept.numbers.values():
        assert numbers == list(range(1, len(numbers) + 1)), "a number is missing or doubled"


@pytest.mark.timeout(200)
async def test_work_survives_kills_in_a_hanging_call_at_a_childs_failure_and_after_a_summary(tmp_path: Path) -> None:
    await asyncio.gather(*(survive(name, tmp_path / str(number)) for number, name in enumerate(QUICK)))


@pytest.mark.skipif(not IS_SOAK, reason="five minutes; make soak runs it")
@pytest.mark.timeout(200)
@pytest.mark.parametrize("place", PLACES)
async def test_work_survives_a_kill_in_each_place(tmp_path: Path, place: str) -> None:
    await survive(place, tmp_path / "place")


ASKING = [
    {**calls(("ask_participant", {"question": "Which one?"})), "when": {"text": r"<goal>\s*fall", "step": 1}},
    {"when": {"text": "the red one"}, "reply": "Red it is."},
    *spawning({"reply": "Nobody asked me."}),
]


@pytest.mark.skipif(not IS_SOAK, reason="make soak runs it")
@pytest.mark.timeout(200)
async def test_a_child_that_is_never_answered_is_still_waited_for_after_a_kill(tmp_path: Path) -> None:
    home = tmp_path / "h"
    furnish(home, ASKING)
    async with asyncio.timeout(PATIENCE_S):
        async with (
            running(home, free=False, launcher=LAUNCHER) as harness,
            connect(Address("http://localhost", socket=harness.socket), "ann", heal_s=PATIENCE_S) as client,
        ):
            task_id = (await client.send("go")).task.task_id

            async def asks() -> bool:
                rows = (await client.task(task_id)).sub_tasks
                return [row.sub_state for row in rows] == ["awaiting-answer"]

            await until(asks)
            await harness.end(signal.SIGKILL)
            await until_gone(home, relatives_of)
            async with running(home, free=False, launcher=LAUNCHER):
                with pytest.raises(UnresolvedSubTasks):
                    await client.complete(task_id)
                [child] = (await client.task(task_id)).sub_tasks
                await client.send("the red one", task_id=child.task_id)

                async def is_read() -> bool:
                    return (await client.task(task_id)).messages[-1].text == "It is COMPLETED."

                await until(is_read)
                assert (await client.complete(task_id)).state is TaskState.COMPLETED
    await until_gone(home, relatives_of)
