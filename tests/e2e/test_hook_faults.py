"""Services of third parties that die, hang, refuse, are away and come back, seen from a running harness."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.e2e.home import Home, Life
from tests.e2e.plugin_folder import Json, at, body, write_plugin
from tests.e2e.said import Said, acknowledged
from tests.e2e.service import Service
from tests.e2e.test_plugins import SCRIPT, connected
from tests.served import http_client
from tiny_harness.client import TurnResult
from tiny_harness.ids import new_id

DEADLINE_S = 3
SLACK_S = 15
"""What a slow machine may take beside."""
AWAY = "http://127.0.0.1:9/rpc"
"""Where nobody listens: port 9 is reserved for discarding, and never given out."""
DEPLOY = {"name": "deploy"}
KEY = {"key_id": "elsewhere"}


@pytest.fixture(scope="module")
async def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Service]:
    async with Service("tests.e2e.elsewhere:app", tmp_path_factory.mktemp("elsewhere") / "log") as service:
        yield service


@pytest.fixture
async def service(elsewhere: Service) -> AsyncGenerator[Service]:
    """Lend the service to a test, which may end before it has mended it."""
    yield elsewhere
    if not elsewhere.is_running:
        await elsewhere.start()
    elsewhere.thaw()


@pytest.fixture(scope="module")
async def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    return Home(tmp_path_factory.mktemp("faults") / "home", SCRIPT)


@pytest.fixture(scope="module")
async def life(home: Home, elsewhere: Service) -> AsyncGenerator[Life]:
    """Start a harness whose `/deploy` and the policy before it are elsewhere."""
    executors = [
        body("deploy", elsewhere.url, deadline_s=DEADLINE_S, **KEY),
        at("command.invoked.pre", elsewhere.url, command="deploy", deadline_s=DEADLINE_S, **KEY),
    ]
    plugin = write_plugin(home.path.parent / "ops", commands=[DEPLOY], executors=executors)
    async with home.serving(plugin) as life:
        yield life


@pytest.fixture(params=["hello", "never answer"], ids=["parked", "working"])
async def task_id(request: pytest.FixtureRequest, life: Life) -> AsyncGenerator[str]:
    """Make a task that is parked, or at work for ever."""
    async with connected(life) as client:
        if request.param == "hello":
            task_id = (await client.send("hello")).task.task_id
        else:
            task_id = (await acknowledged(life, Said(request.param))).task_id
        yield task_id
        await client.cancel(task_id)


async def deploy(life: Life, task_id: str, where: str, message_id: str) -> TurnResult:
    async with connected(life) as client:
        return await client.send(f"/deploy {where}", task_id=task_id, message_id=message_id)


def failed(result: TurnResult, why: str) -> bool:
    return (
        result.command is not None
        and result.command.outcome == "failed"
        and result.reply.startswith("/deploy failed: ")
        and why in result.reply
        and "(reference " in result.reply
    )


@pytest.mark.parametrize("how", ["killed", "frozen"])
async def test_a_service_that_dies_or_hangs_in_a_call_is_a_reply_within_its_deadline(
    life: Life, home: Home, service: Service, task_id: str, how: str
) -> None:
    before, tasks, message_id = home.snapshot(task_id), home.task_ids(), new_id()
    async with asyncio.TaskGroup() as group:
        sending = group.create_task(deploy(life, task_id, "hold inside", message_id))
        await service.until(f"called {message_id}")
        await service.kill() if how == "killed" else service.freeze()
        async with asyncio.timeout(DEADLINE_S + SLACK_S):
            result = await sending
    reason = "the connection broke" if how == "killed" else f"no answer within {DEADLINE_S} s"
    assert failed(result, reason), result.reply
    assert (home.snapshot(task_id), home.task_ids()) == (before, tasks)
    async with connected(life) as client:
        status = await client.send("/status", task_id=task_id)
    assert status.command
    assert status.command.outcome == "done"
    assert (status.command.data or {})["state"] == before["state"]
    await service.start() if how == "killed" else service.thaw()
    again = await deploy(life, task_id, "staging", new_id())
    assert (again.reply, again.command and again.command.data) == ("Deployed to staging.", {"env": "staging"})
    assert service.witnessed.count(f"called {message_id}") == 1


async def test_a_refusal_from_elsewhere_has_its_reason_and_changes_nothing(
    life: Life, home: Home, service: Service, task_id: str
) -> None:
    before, message_id = home.snapshot(task_id), new_id()
    result = await deploy(life, task_id, "production", message_id)
    assert (result.reply, result.command and result.command.outcome) == (
        "nothing goes to production on a Friday",
        "refused",
    )
    assert home.snapshot(task_id) == before
    assert f"before {message_id}" in service.witnessed
    assert f"called {message_id}" not in service.witnessed


async def hooks_on(life: Life, name: str) -> dict[str, Json]:
    """Ask `/_monitor` until an engine's report says that a hook is down; all hooks by their names."""
    async with http_client(life) as http, asyncio.timeout(60):
        while True:
            [engine] = (await http.get("/_monitor")).json()["engines"]
            hooks = {hook["name"]: hook for hook in engine["health"]["hooks"]}
            if hooks[name]["state"] == "down":
                return hooks
            await asyncio.sleep(0.2)


async def test_a_policy_that_is_down_lets_nothing_through_and_an_observer_that_is_down_stops_nothing(
    tmp_path: Path, service: Service
) -> None:
    executors = [
        body("deploy", "hooks.py:deploy"),
        at("command.invoked.pre", service.url, command="deploy", **KEY),
        at("request.received.pre", service.url, **KEY),
        at("request.received.pre", AWAY, name="curious", on_failure="open", **KEY),
        at("reply.sent.post", AWAY, name="observer", **KEY),
    ]
    code = "def deploy(context):\n    return 'Deployed from here.'\n"
    plugin = write_plugin(tmp_path / "guards", commands=[DEPLOY], executors=executors, code=code)
    async with Home(tmp_path / "home", SCRIPT).serving(plugin) as life, connected(life) as client:
        # The observer and the open hook are down all the time.
        first = await client.send("hello, please")
        task_id = first.task.task_id
        assert (first.reply, first.is_refused) == ("1: hello, please", False)
        assert (await client.send("/deploy x", task_id=task_id)).reply == "Deployed from here."
        assert (await client.send("hello", task_id=task_id)).reply == "Refused: say please"

        await service.kill()
        for task in (task_id, None):
            refused = await client.send("hello, please", task_id=task)
            assert refused.is_refused
            assert "guards/request.received.pre" in refused.reply
            assert "cannot be connected to" in refused.reply
            assert refused.task.state.word == "INPUT_REQUIRED"
        assert failed(await client.send("/deploy x", task_id=task_id), "guards/command.invoked.pre")

        down = ("guards/request.received.pre", "guards/curious", "guards/observer")
        status = (await client.send("/status", task_id=task_id)).command
        assert status
        shown = {hook["name"]: hook for hook in (status.data or {})["hooks"]}
        monitored = await hooks_on(life, "guards/request.received.pre")
        for hooks in (shown, monitored):
            assert {name: hooks[name]["state"] for name in down} == dict.fromkeys(down, "down")
            assert hooks["guards/deploy"]["state"] == "up"
            assert hooks["guards/request.received.pre"]["last_error"]
        assert [message.text for message in (await client.task(task_id)).messages][-1].startswith("Task ")

        await service.start()
        assert (await client.send("hello again, please", task_id=task_id)).reply.endswith(": hello again, please")
        assert (await client.send("/deploy x", task_id=task_id)).reply == "Deployed from here."
