"""`kill -9` of a harness with plugins: commands elsewhere run at most once, and tasks outlive plugins that go."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from tests.e2e.home import Home
from tests.e2e.plugin_folder import at, body, write_plugin
from tests.e2e.said import Said, acknowledged, answers, replies
from tests.e2e.service import Service
from tests.e2e.test_plugins import SCRIPT

UNKNOWN = "/deploy was cut off while it ran: whether it did anything is unknown"
HELD = {"hold before": "before", "hold inside": "called", "hold after": "after"}
"""Where `/deploy` is held, and what the service says when it is there."""
ACKNOWLEDGED = 4
"""Commands that the harness is killed after having acknowledged, wherever they are then."""

NOTES = """
def note(context):
    return f"Noted: {context.arguments}"


async def no_birds(context):
    if "falcon" in context.text:
        raise ValueError("a policy that is broken")
"""


def ops(folder: Path, service: Service) -> Path:
    """Write a plugin whose `/deploy` is elsewhere, with a hook before and one after it."""
    more = {"key_id": "elsewhere", "deadline_s": 10}
    executors = [
        body("deploy", service.url, **more),
        at("command.invoked.pre", service.url, command="deploy", **more),
        at("command.invoked.post", service.url, command="deploy", **more),
    ]
    return write_plugin(folder / "ops", commands=[{"name": "deploy"}], executors=executors)


def notes(folder: Path) -> Path:
    """Write a plugin with a `/note` and a policy of its own."""
    executors = [body("note", "hooks.py:note"), at("request.received.pre", "hooks.py:no_birds")]
    return write_plugin(folder / "notes", commands=[{"name": "note"}], executors=executors, code=NOTES)


async def test_a_command_elsewhere_is_called_at_most_once_wherever_the_harness_is_killed(tmp_path: Path) -> None:
    home = Home(tmp_path / "home", SCRIPT)
    async with Service("tests.e2e.elsewhere:app", tmp_path / "log") as service:
        plugin = ops(tmp_path, service)
        async with home.serving(plugin) as life:
            held = await asyncio.gather(*(acknowledged(life, Said(f"/deploy {where}")) for where in HELD))
            for one in held:
                await service.until(f"{HELD[one.text.removeprefix('/deploy ')]} {one.message_id}")
            behind = await acknowledged(life, Said("/deploy behind", held[0].task_id))
            anywhere = await asyncio.gather(
                *(acknowledged(life, Said("/deploy anywhere")) for _ in range(ACKNOWLEDGED))
            )
            await life.kill()
        async with home.serving(plugin) as life:
            ends = {
                one: (answer.reply, service.witnessed.count(f"called {one.message_id}"))
                for one, answer in zip(
                    [*held, behind, *anywhere], await answers(life, [*held, behind, *anywhere]), strict=True
                )
            }
            tasks = [one.task_id for one in (*held, *anywhere)]
            assert set(await replies(life, [Said("/deploy again", task) for task in tasks])) == {"Deployed to again."}
    assert [ends[one] for one in held] == [(UNKNOWN, 0), (UNKNOWN, 1), (UNKNOWN, 1)]
    assert ends[behind] == ("Deployed to behind.", 1)
    assert {ends[one] for one in anywhere} <= {("Deployed to anywhere.", 1), (UNKNOWN, 0), (UNKNOWN, 1)}
    assert all(home.snapshot(task)["commands"] == [] for task in tasks)


async def test_tasks_go_on_when_a_plugin_goes_and_when_one_comes(tmp_path: Path) -> None:
    async with Service("tests.e2e.elsewhere:app", tmp_path / "log") as service:
        plugins = (ops(tmp_path, service), notes(tmp_path))
        # Each waits for ten seconds until what was cut is given out again: so both at once.
        async with asyncio.timeout(100), asyncio.TaskGroup() as group:
            group.create_task(plugins_go(Home(tmp_path / "going", SCRIPT), plugins, service))
            group.create_task(plugins_come(Home(tmp_path / "coming", SCRIPT), plugins))


async def plugins_go(home: Home, plugins: Sequence[Path], service: Service) -> None:
    """Kill a harness with plugins in the middle of everything, and start it without."""
    async with home.serving(*plugins) as life:
        parked = [answer.task.task_id for answer in await answers(life, [Said("hello"), Said("hello")])]
        assert await replies(life, [Said("/note a", task) for task in parked]) == ["Noted: a"] * 2
        cut = await acknowledged(life, Said("/deploy hold inside"))
        await service.until(f"called {cut.message_id}")
        working = await asyncio.gather(*(acknowledged(life, Said("think")) for _ in range(2)))
        await life.kill()
    assert [home.snapshot(one.task_id)["state"] for one in working] == ["TASK_STATE_WORKING"] * 2
    async with home.serving() as life:
        assert await replies(life, [Said("/note b", task) for task in parked]) == ["2: /note b"] * 2
        assert await replies(life, working) == ["I have thought."] * 2
        assert await replies(life, [cut]) == ["/deploy is gone from here"]
        after = [Said("/deploy x", one.task_id) for one in (*working, cut)]
        assert await replies(life, after) == ["2: /deploy x", "2: /deploy x", "1: /deploy x"]
    assert service.witnessed.count(f"called {cut.message_id}") == 1


async def plugins_come(home: Home, plugins: Sequence[Path]) -> None:
    """Kill a harness without plugins while it works, and start it with some."""
    async with home.serving() as life:
        parked = [answer.task.task_id for answer in await answers(life, [Said("hello"), Said("hello")])]
        assert await replies(life, [Said("/note a", task) for task in parked]) == ["2: /note a"] * 2
        working = await asyncio.gather(*(acknowledged(life, Said("think")) for _ in range(2)))
        await life.kill()
    assert [home.snapshot(one.task_id)["state"] for one in working] == ["TASK_STATE_WORKING"] * 2
    async with home.serving(*plugins) as life:
        assert await replies(life, [Said("/note b", task) for task in parked]) == ["Noted: b"] * 2
        assert await replies(life, working) == ["I have thought."] * 2
        tasks = [*parked, *(one.task_id for one in working)]
        assert await replies(life, [Said("/deploy x", task) for task in tasks]) == ["Deployed to x."] * 4
        assert await replies(life, [Said("go on", task) for task in parked]) == ["3: go on"] * 2
